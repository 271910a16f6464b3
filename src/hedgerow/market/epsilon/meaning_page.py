"""Tables and a page of what epsilons mean, and of what they cost a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.privacy.accounting import Adjacency
from hedgerow.report import Curve, Grid, Report, Series

from .meaning import BEYOND, COUNTED, PRIORS, VALUES, Meaning, factor_told, hundred, meaning, percent
from .posterior import gaussian_power, power
from .utility import utility, utility_of_count

LOW, HIGH, POINTS = 0.03, 10.0, 49
"""Figures go from the one to the other, and further where an epsilon lies beyond."""


@dataclass(frozen=True)
class AccuracyCost:
    """What an epsilon costs a study in accuracy.

    Attributes
    ----------
    sentence : str
        What is forecast, or why nothing is.
    grids : tuple of Grid
        One row for each epsilon.
    curves : tuple of Curve
        Over epsilon.
    """

    sentence: str
    grids: tuple[Grid, ...] = ()
    curves: tuple[Curve, ...] = ()


def grids_of(meanings: Sequence[Meaning]) -> tuple[Grid, ...]:
    """The tables of one epsilon, or the one table of several."""
    return family(meanings) if len(meanings) > 1 else (beliefs(meanings[0]), tests(meanings[0]), leaks(meanings[0]))


def beliefs(m: Meaning) -> Grid:
    """Before and after, of adversaries with different priors."""
    rows = tuple(
        (percent(b.prior), percent(b.most), percent(b.least), percent(b.unaided), percent(b.right), round(b.times, 3))
        for b in m.beliefs
    )
    columns = (
        "belief before",
        "after, at most",
        "after, at least",
        "right guess before",
        "right guess after",
        "times as often",
    )
    note = "Right guesses are on average over what is released; an answer seldom changes the guess of who is nearly sure."
    return Grid(f"What an adversary comes to believe of one {m.one}", columns, rows, note + _exception("Beliefs after", m))


def tests(m: Meaning) -> Grid:
    """The best test whether one person took part."""
    gaussian = m.noise_multiplier is not None
    rows = tuple(
        (percent(t.false_alarms), percent(t.power), *((percent(t.gaussian),) if t.gaussian is not None else ()))
        for t in m.tests
    )
    best = (
        "advantage",
        percent(m.advantage),
        *((percent(m.gaussian_advantage),) if m.gaussian_advantage is not None else ()),
    )
    columns = ("false alarms", "power, at most", *(("Gaussian noise",) if gaussian else ()))
    noise = f" Gaussian noise that spends this epsilon and delta has multiplier {m.noise_multiplier:.4g}." if gaussian else ""
    return Grid(
        "How well a test tells who took part",
        columns,
        (*rows, best),
        "Power is a bound that some mechanism reaches. Advantage: power less false alarms, where it is largest." + noise,
    )


def leaks(m: Meaning) -> Grid:
    """Bits about one person."""
    two = m.adjacency == "add-remove"
    named = [("there or not" if two else "one of two data", m.presence)] + [
        (f"a value, one of {leak.values}", leak) for leak in m.leaks if two or leak.values > 2
    ]
    rows = tuple((name, round(leak.bits, 4), round(math.log2(leak.values), 4), round(leak.times, 3)) for name, leak in named)
    columns = (f"of one {m.one}", "bits told, at most", "bits there are", "right guess, times as often")
    steps = f" Two values are two steps apart, where neighbours differ by a {m.one}." if two else ""
    note = f"Min-entropy leakage per {m.one}, where all values were as likely." + steps
    return Grid(f"What is told about one {m.one}", columns, rows, note)


def family(meanings: Sequence[Meaning]) -> tuple[Grid, Grid]:
    """One row for each epsilon: what an adversary gains, and what is told."""
    first = meanings[0]
    gaussian = any(m.gaussian_advantage is not None for m in meanings)
    gained = tuple(
        (
            f"{m.epsilon:g}",
            factor_told(m.odds),
            *(percent(b.most) for b in m.beliefs),
            hundred(m.advantage),
            *((hundred(m.gaussian_advantage or 0.0),) if gaussian else ()),
        )
        for m in meanings
    )
    becomes = tuple(f"{percent(b.prior)} becomes" for b in first.beliefs)
    adversary = Grid(
        f"What an adversary gains about one {first.one}",
        ("epsilon", "odds, times", *becomes, "guessed of 100", *(("of Gaussian noise",) if gaussian else ())),
        gained,
        f"At most. Guessed: of 100 {first.many} of whom half took part." + _exception("Odds and beliefs", first),
    )
    presence = "there or not" if first.adjacency == "add-remove" else "one of two data"
    told = tuple(
        (f"{m.epsilon:g}", round(m.presence.bits, 4), *(round(leak.bits, 4) for leak in m.leaks), m.count_error)
        for m in meanings
    )
    bits = Grid(
        f"What is told about one {first.one}, and what a count loses",
        ("epsilon", presence, *(f"one of {leak.values}" for leak in first.leaks), "a count, +/-"),
        told,
        f"Bits about one {first.one}, at most. A count that spends all of epsilon is within the last number in 95 of 100 "
        "answers.",
    )
    return adversary, bits


def page(meanings: Sequence[Meaning], cost: AccuracyCost | None = None) -> Report:
    """One page: sentences, tables, and figures over epsilon."""
    first, several = meanings[0], len(meanings) > 1
    told = ", ".join(f"{m.epsilon:g}" for m in meanings)
    at = f"delta {first.delta:g}, {first.adjacency} neighbours"
    *said, general = first.sentences
    promise = f"Each is a promise about one {first.one}, at {at}." if several else " ".join(said)
    return Report(
        title=f"What epsilon{'s' * several} {told} mean{'s' * (not several)}",
        study="privacy explain",
        description=f"For everything that is released about a {first.one} together: {at}.",
        privacy=promise,
        privacy_ok=True,
        privacy_weak=any(m.weak for m in meanings),
        metrics=() if several else _metrics(first),
        warnings=(general, *((cost.sentence,) if cost else ())),
        notes=(f"Bits are per {first.one}: the number does not grow with the database.", *([COUNTED[first.unit]] * several)),
        curves=(*(cost.curves if cost else ()), *curves_of(meanings)),
        tables=(*(cost.grids if cost else ()), *grids_of(meanings)),
        tables_first=True,
    )


def curves_of(meanings: Sequence[Meaning]) -> tuple[Curve, ...]:
    """Beliefs, attacks, leakage and utility over epsilon, and the trade-off of tests at the epsilons themselves."""
    first = meanings[0]
    given = [m.epsilon for m in meanings if m.epsilon > 0]
    grid = np.geomspace(min([LOW, *given]), max([HIGH, *given]), POINTS)
    xs = tuple(sorted({float(f"{x:.6g}") for x in grid} | set(given)))
    priors = tuple(b.prior for b in first.beliefs) or PRIORS
    values = tuple(leak.values for leak in first.leaks) or VALUES
    all_ = [_at(x, first.delta, first.adjacency, priors, values) for x in xs]

    def line(name: str, of: Callable[[Meaning], float | None], style: str = "main") -> Series:
        found = [of(m) for m in all_]
        ys = tuple(math.nan if y is None else float(y) for y in found)
        return Series(name, xs, ys, style)  # type: ignore[arg-type]

    gaussian = first.gaussian_advantage is not None
    figures = (
        Curve(
            f"Belief that one {first.one} took part",
            "epsilon",
            "percent after, at most",
            tuple(line(f"{percent(p)} before", lambda m, i=i: 100 * m.beliefs[i].most) for i, p in enumerate(priors)),  # type: ignore[misc]
            note="A legend ends with the last value." + _exception("After", first),
            log="x",
        ),
        Curve(
            "Best attack on who took part",
            "epsilon",
            "power less false alarms",
            (
                line("any mechanism, at most", lambda m: m.advantage),
                *((line("Gaussian noise", lambda m: m.gaussian_advantage),) if gaussian else ()),
            ),
            note="0 is a coin, 1 is certainty.",
            log="x",
        ),
        Curve(
            f"Leakage about one {first.one}",
            "epsilon",
            "bits, at most",
            (
                line("there or not", lambda m: m.presence.bits),
                *(line(f"one of {v} values", lambda m, i=i: m.leaks[i].bits) for i, v in enumerate(values)),  # type: ignore[misc]
            ),
            log="x",
        ),
        Curve(
            "Utility of one answer",
            "epsilon",
            "chance that it is exactly right",
            (
                line("a count from 0 to 6", lambda m: utility_of_count(m.epsilon, 6)),
                line("seven answers in a circle", lambda m: utility(m.epsilon, 3, 2)),
                line("five answers without an order", lambda m: utility(m.epsilon, 1, 4)),
            ),
            note="Of the best mechanism, where all answers are as likely; the answer spends all of epsilon.",
            log="x",
        ),
    )
    return (*figures, _trade_off(meanings))


def _trade_off(meanings: Sequence[Meaning]) -> Curve:
    alphas = tuple(float(a) for a in np.linspace(0, 1, 101))
    series = []
    for m in meanings[:5]:
        series.append(Series(f"epsilon {m.epsilon:g}, at most", alphas, tuple(power(a, m.epsilon, m.delta) for a in alphas)))
        if m.noise_multiplier is not None and len(meanings) == 1:
            ys = tuple(gaussian_power(a, m.noise_multiplier) for a in alphas)
            series.append(Series(f"epsilon {m.epsilon:g}, Gaussian noise", alphas, ys))
    chance = Series("chance", (0.0, 1.0), (0.0, 1.0), "muted")
    return Curve(f"Tests whether one {meanings[0].one} took part", "false alarms", "power", (*series, chance))


def _at(x: float, delta: float, adjacency: Adjacency, priors: tuple[float, ...], values: tuple[int, ...]) -> Meaning:
    return meaning(x, delta, adjacency, priors=priors, values=values, false_alarms=())


def _metrics(m: Meaning) -> tuple[tuple[str, str], ...]:
    half = next((b for b in m.beliefs if b.prior == 0.5), None)
    gaussian = m.gaussian_advantage
    return (
        ("odds change at most", f"{factor_told(m.odds)} times"),
        *((("an even belief becomes at most", percent(half.most)),) if half else ()),
        ("an attack guesses of 100", hundred(m.advantage)),
        *((("of Gaussian noise", hundred(gaussian)),) if gaussian is not None else ()),
    )


def _exception(what: str, m: Meaning) -> str:
    return f" {what}: at {BEYOND:g} times the odds of e^epsilon, but for a probability of {m.beyond:.2g}." if m.delta else ""
