"""Owners choose their epsilons in turn: Figures 4.2 and 4.3 of Wu 2019, as printed and as mended.

    repeat   for owner l = 1 .. L:   eps_l <- argmax over [0, cap] of payoff_l(eps_l, the others)       from each start at once
    until nobody moves

Each party of the federation stands for an owner. They are asked once, how many records they have together: the separable game,
which is well posed and not in the thesis, divides the noise by that. The thesis names no u, v, n, c, cap, sizes or starts for
its figures, so that only their shape can be compared; a run's are its settings, and its report says them.

Releases : the number of records of all parties, once.
Unit     : record.

Source: Wu 2019, (4.1), (4.2), Figures 4.2 and 4.3; `hedgerow.market.games` says what is mended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.market.games import OpennessGame, SeparableGame, leakage_game, utility_game
from hedgerow.market.games.payoffs import Form
from hedgerow.market.games.responses import STILL, in_turn
from hedgerow.stats.columns import schema_of
from hedgerow.stats.hidden.terms import count

if TYPE_CHECKING:
    from hedgerow.report import Outcome

GameName = Literal["leakage", "utility", "separable"]
"""(4.1), (4.2), and the forecast with equal weights."""

LEAST = 1e-3
"""Least epsilon of the separable game, whose noise grows beyond all bounds towards 0."""


@dataclass(frozen=True)
class OpennessState:
    """Where owners stand.

    Attributes
    ----------
    round : int
        How often each has answered.
    walked : array of shape (rounds + 1, starts, owners)
        Epsilons, from the starts on.
    records : float
        Of all parties, at least 1.
    """

    round: int
    walked: Array
    records: float


def game_of(settings: Mapping[str, Any], owners: int, records: float) -> OpennessGame:
    """The game that settings describe."""
    if settings["game"] == "separable":
        benefits, costs = (tuple(settings[name] or [1.0] * owners) for name in ("benefits", "costs"))
        if {len(benefits), len(costs)} != {owners}:
            raise SettingsInvalid(
                f"{len(benefits)} benefits and {len(costs)} costs for {owners} owners.",
                remedy="Give one for each party, or none.",
            )
        return SeparableGame(
            benefits, costs, settings["kappa"], records, settings["transfers"], lowest=LEAST, cap=settings["cap"]
        )
    sizes = tuple(settings["sizes"] or [1.0] * owners)
    if len(sizes) != owners:
        raise SettingsInvalid(f"{len(sizes)} sizes for {owners} owners.", remedy="Give one for each party, or none.")
    common = {name: settings[name] for name in ("cap", "form", "exponent", "minimised")}
    if settings["game"] == "leakage":
        return leakage_game(sizes, people=settings["people"], values=settings["values"], **common)
    return utility_game(sizes, distance=settings["distance"], border=settings["border"], **common)


def outcome(federation: Federation, settings: Mapping[str, Any], state: OpennessState) -> Outcome:
    """Equilibria, Rosen's condition, payoffs and paths."""
    from .games_results import outcome

    return outcome(game_of(settings, federation.size, state.records), settings, state)


@program(
    "Owners choose epsilons in turn, in the games of Wu 2019, as printed and as mended: where they end, and where else.",
    outcome=outcome,
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius"]).take(range(60)),
        {"starts": [[0.2, 1.0, 2.5, 1.0]], "game": "separable", "benefits": [50.0, 50.0, 20.0, 1.0], "kappa": 300.0},
    ),
)
def openness_game(
    federation: Federation,
    *,
    starts: list[list[float]],
    game: GameName = "leakage",
    form: Form = "mended",
    people: int = 10,
    values: int = 5,
    distance: int = 3,
    border: int = 2,
    cap: float = 3.0,
    exponent: float = 1.0,
    sizes: list[float] | None = None,
    minimised: bool = False,
    benefits: list[float] | None = None,
    costs: list[float] | None = None,
    kappa: float = 1e4,
    transfers: bool = False,
    rounds: int = 40,
    start: OpennessState | None = None,
) -> Iterator[OpennessState]:
    """Let owners choose the epsilon that pays best, one after the other.

    Parameters
    ----------
    starts : list of list of float
        Epsilons to begin from: one for each party, several times.
    game : {"leakage", "utility", "separable"}
        (4.1), (4.2), or the game of `hedgerow.market.games.separable`.
    form : {"mended", "printed", "factor restored"}
        How the payoff is scaled (`hedgerow.market.games.payoffs`).
    people : int
        u of (4.1): people in a database.
    values : int
        v of (4.1): values that one may have.
    distance : int
        n of (4.2): steps to the farthest answer.
    border : int
        c of (4.2): answers at each distance.
    cap : float
        Largest epsilon.
    exponent : float
        c of n^c in the weighting.
    sizes : list of float, optional
        n of each party; all the same by default.
    minimised : bool
        With the sign of section 4.2, which minimises what is paid less what it costs.
    benefits : list of float, optional
        b of each party in the separable game; all 1 by default.
    costs : list of float, optional
        c of each party in the separable game; all 1 by default.
    kappa : float
        Excess times the square of all records, of noise at epsilon 1, in the separable game.
    transfers : bool
        Whether owners of the separable game are paid what the others gain.
    rounds : int
        At most.

    Yields
    ------
    OpennessState
        After each round.

    Raises
    ------
    SettingsInvalid (HR-511)
        Starts or sizes are not one for each party, or out of range.
    """
    shape = {"people": people, "values": values, "distance": distance, "border": border}
    settings = shape | {"game": game, "form": form, "cap": cap, "exponent": exponent, "sizes": sizes, "minimised": minimised}
    settings |= {"benefits": benefits, "costs": costs, "kappa": kappa, "transfers": transfers}
    owners = federation.size
    game_of(settings, owners, 1.0)  # refuses before anybody is asked
    if not starts or any(len(one) != owners for one in starts) or not 0 <= np.min(starts) <= np.max(starts) <= cap:
        raise SettingsInvalid(
            f"starts {starts!r} of {owners} owners with a cap of {cap:g}.",
            remedy="Give lists of one epsilon for each party, from 0 to the cap.",
        )
    known = complete_cases(federation, count=False)
    state = start or OpennessState(0, np.array([starts], float), 0.0)
    if not state.records:
        weight = schema_of(federation).heaviest
        n = known.sum(count, bound=None if weight is None else linf(weight, "record"))
        state = replace(state, records=max(1.0, float(n)))
    played = game_of(settings, owners, state.records)
    while state.round < rounds and not still(state.walked):
        here = in_turn(played, state.walked[-1])
        state = OpennessState(state.round + 1, np.concatenate([state.walked, here[None]]), state.records)
        yield state


def still(walked: Array) -> bool:
    """Whether nobody moved in the last round."""
    return len(walked) > 1 and bool(np.abs(walked[-1] - walked[-2]).max() <= STILL)
