"""What a game over epsilon has to show: its equilibria, what could be known of their number, payoffs, and paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.market.games import (
    Equilibrium,
    OpennessGame,
    SeparableGame,
    ShareGame,
    best_welfare,
    deviation_gains,
    equilibria,
    price_of_anarchy,
    uniqueness,
)
from hedgerow.report import Curve, Outcome, Series

from .games import OpennessState

Settings = Mapping[str, Any]

MEASURE = "equilibria found"
"""Those of owners alike counted apart; there may be more."""
END = "mean epsilon where the first start ends"
"""0 where everybody is at zero."""

NAMES = {"leakage": "(4.1)", "utility": "(4.2)", "separable": "separable"}
FIGURES = {"leakage": "Figure 4.2", "utility": "Figure 4.3", "separable": "The separable game,"}
ALONG = 121


def outcome(game: OpennessGame, settings: Settings, state: OpennessState) -> Outcome:
    """Tables and figures of a game; the number of equilibria found is the run's number."""
    ends = state.walked[-1]
    found = equilibria(game, state.walked[0], n_starts=4)
    metrics = {
        MEASURE: float(len(found)),
        "of them stable": float(sum(one.stable for one in found)),
        END: float(ends[0].mean()),
        "largest gain by deviating from there": float(deviation_gains(game, ends[0]).max()),
    }
    best, largest = best_welfare(unpaid(game), n_starts=4)
    who = described(settings)
    condition = uniqueness(game)
    rosen = {
        "game": who,
        "scale": game.scale if isinstance(game, ShareGame) else None,
        "largest own second derivative": condition.own,
        "largest eigenvalue of G + G'": condition.largest,
        "share of profiles below 0": condition.share,
        "profiles": condition.profiles,
        "largest sum of payoffs": largest,
        "at mean epsilon": float(best.mean()),
    }
    return Outcome(
        metrics,
        tables={
            "Equilibria": pd.DataFrame([row_of(game, who, one, largest) for one in found]),
            "Uniqueness by Rosen's condition": pd.DataFrame([rosen]),
        },
        arrays={"walked": state.walked},
        curves=(payoff_curve(game, settings, ends[0]), path_curve(game, settings, state.walked)),
        notes=(parameters(settings, game),),
    )


def row_of(game: OpennessGame, who: str, one: Equilibrium, largest: float) -> dict[str, Any]:
    """An equilibrium, as a row of the table."""
    together = replace(one, payoffs=unpaid(game).payoffs(one.epsilons))
    anarchy = price_of_anarchy([together], largest)
    row = {
        "game": who,
        "equilibrium": one.kind,
        "stable": "yes" if one.stable else "no",
        **{f"epsilon {k + 1}": float(e) for k, e in enumerate(one.epsilons)},
        **{f"payoff {k + 1}": float(p) for k, p in enumerate(one.payoffs)},
        "gain by deviating": one.deviation_gain,
    }
    if isinstance(game, ShareGame):  # elsewhere a payoff is a loss, of which the least is wanted
        row["paid at least its cost"] = "yes" if one.individually_rational else "no"
    return row | {"price of anarchy": None if np.isnan(anarchy) else anarchy}


def unpaid(game: OpennessGame) -> OpennessGame:
    """The game without transfers, which pass from one to another and add nothing to a sum."""
    return replace(game, transfers=False) if isinstance(game, SeparableGame) else game


def described(settings: Settings) -> str:
    """A game in a few words."""
    if settings["game"] == "separable":
        return f"{NAMES['separable']} {'with' if settings['transfers'] else 'without'} transfers"
    sizes = settings["sizes"]
    sized = "" if sizes is None or len(set(sizes)) == 1 else ", sizes " + " ".join(f"{size:g}" for size in sizes)
    people = f", u {settings['people']}" if settings["game"] == "leakage" else ""
    sign = ", minimised" if settings["minimised"] else ""
    return f"{NAMES[settings['game']]} {settings['form']}{people}{sized}{sign}"


def parameters(settings: Settings, game: OpennessGame) -> str:
    """What the thesis leaves open, as it is here."""
    if isinstance(game, SeparableGame):
        benefits, costs = (", ".join(f"{one:g}" for one in several) for several in (game.benefits, game.costs))
        return (
            f"Here benefits are {benefits}, costs {costs}, and kappa / N^2 is {game.kappa / game.records**2:.4g}. "
            "This game is not in the thesis."
        )
    assert isinstance(game, ShareGame)
    shape = (
        f"u = {settings['people']}, v = {settings['values']}"
        if settings["game"] == "leakage"
        else f"n = {settings['distance']}, c = {settings['border']}"
    )
    sizes = ", ".join(f"{size:g}" for size in game.sizes)
    return (
        f"Here {shape}, epsilons go from 0 to {settings['cap']:g}, sizes to the power {settings['exponent']:g} are {sizes} "
        f"and the scale is {game.scale:.4g}. The thesis gives none of these for its figures, nor the starts."
    )


def payoff_curve(game: OpennessGame, settings: Settings, end: np.ndarray) -> Curve:
    """Part (a) of a figure: each owner's payoff against its own epsilon, the others where the first start ends."""
    grid = np.linspace(game.lowest, game.cap, ALONG)
    grid = grid[grid >= 0.1] if isinstance(game, SeparableGame) else grid  # beyond all scales below
    lines = []
    for k in range(game.players):
        profiles = np.tile(end, (len(grid), 1))
        profiles[:, k] = grid
        lines.append(Series(f"owner {k + 1}", tuple(grid.tolist()), tuple(game.payoffs(profiles)[:, k].tolist())))
    marks = ", ".join(f"{e:.4g}" for e in end)
    note = f"The others at {marks}, where best responses from the first start end; each payoff is largest there."
    title = f"{FIGURES[settings['game']]} a: payoffs, {described(settings)}"
    return Curve(title, "own epsilon", "payoff", tuple(lines), note=note)


def path_curve(game: OpennessGame, settings: Settings, walked: np.ndarray) -> Curve:
    """Parts (b) and (c): epsilons round by round, a line for each owner and start."""
    rounds = tuple(float(k) for k in range(len(walked)))
    styles = ("main", "reference", "muted")
    lines = [
        Series(f"owner {k + 1}, start {m + 1}", rounds, tuple(walked[:, m, k].tolist()), styles[min(m, 2)])  # type: ignore[arg-type]
        for m in range(walked.shape[1])
        for k in range(game.players)
    ]
    equal = not isinstance(game, ShareGame) or len(set(game.sizes)) == 1
    title = f"{FIGURES[settings['game']]} {'b' if equal else 'c'}: best responses, {described(settings)}"
    return Curve(title, "round", "epsilon", tuple(lines), note="Owners answer in turn; a line for each owner and start.")
