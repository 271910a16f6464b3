"""Games over epsilon: what owners choose where each pays for its own openness and is paid for it, or gains by all of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .equilibria import Equilibrium, Uniqueness, best_welfare, equilibria, price_of_anarchy, uniqueness
    from .payoffs import Gain, LeakageGain, ShareGame, UtilityGain, leakage_game, utility_game
    from .public_goods import PublicGoodsGame
    from .responses import OpennessGame, best_responses, deviation_gains, paths
    from .separable import SeparableGame

__all__ = [
    "Equilibrium",
    "Gain",
    "LeakageGain",
    "OpennessGame",
    "PublicGoodsGame",
    "SeparableGame",
    "ShareGame",
    "Uniqueness",
    "UtilityGain",
    "best_responses",
    "best_welfare",
    "deviation_gains",
    "equilibria",
    "leakage_game",
    "paths",
    "price_of_anarchy",
    "uniqueness",
    "utility_game",
]

lazily(__name__)
