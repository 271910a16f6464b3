"""Features for private learning: fixed ones that cost nothing, private centres and components, frozen layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .centre import centre, centring
    from .chain import Features
    from .frozen import freeze, trained
    from .principal import Basis, principal, projection
    from .scattering import scatter, scattering
    from .steps import FeatureStep
    from .straight import straighten, straightening
    from .training import FeatureState, dpsgd_on_features

__all__ = [
    "Basis",
    "FeatureState",
    "FeatureStep",
    "Features",
    "centre",
    "centring",
    "dpsgd_on_features",
    "freeze",
    "principal",
    "projection",
    "scatter",
    "scattering",
    "straighten",
    "straightening",
    "trained",
]

lazily(__name__)
