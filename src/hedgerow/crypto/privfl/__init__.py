"""Hidden models: gradients of a model that parties do not see, and standardised values by numbers that stores do not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .grid import CUBIC, Cubic, GradientGrid, LinearGradientGrid
    from .keyproof import checked_key, prove
    from .masks import Limbs, Slots
    from .party import PrivFLParty
    from .scaling import ScalingGrid, ScalingParty, ScalingServer
    from .server import PrivFLServer
    from .settings import PrivFL

__all__ = [
    "CUBIC",
    "Cubic",
    "GradientGrid",
    "Limbs",
    "LinearGradientGrid",
    "PrivFL",
    "PrivFLParty",
    "PrivFLServer",
    "ScalingGrid",
    "ScalingParty",
    "ScalingServer",
    "Slots",
    "checked_key",
    "prove",
]

lazily(__name__)
