"""Linear models from sufficient statistics: one noisy question, then algebra at the server.

    M       <- sum over records of  (a x x', b t x, c t^2)          one flat array in one ball, see `second_moments`
    theta   <- ssp | adassp | functional | dpme of M                 post-processing, see `solving`

One program with three noises. Behind Gaussian noise products are asked for isometrically and the ball is l2; behind Laplace
noise, pure epsilon, as coefficients of a polynomial and the ball is l1; without noise all methods are least squares.

    ssp          a = b: halves of mu^2 to X'X and X't                the default
    adassp       the same question; another ridge, with a bound on the excess risk
    functional   a : b = 1 : 2, the coefficients of (t - x'theta)^2; for labels 1/8 : 1/2, those of the logistic loss at zero
    dpme         a : b : c = 2 : 2 : 1, one matrix of moments

A binary target is t = 2 y - 1. At zero the logistic loss has the Taylor polynomial log 2 - (y - 1/2) x'theta + (x'theta)^2 / 8,
whose minimiser is 4 times that of least squares on y - 1/2: so a functional mechanism for logistic regression classifies
exactly as least squares on labels does, and is this program. Coefficients of labels are of that polynomial, in log-odds.

Releases : M, once: d^2 + d numbers, or d (d + 1) / 2 + d of coefficients; one more for dpme.
Unit     : record.
Source   : Zhang et al. 2012 (functional mechanism); Lei 2011 (M-estimators); Vu & Slavkovic 2009 and Wang 2018 (SSP, AdaSSP).
           Differs: constants (`second_moments`), no eigenvalue is released (`solving`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, load
from hedgerow.data.cuts import names_of
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share

from ..columns import schema_of
from ..indicators import cases_of_model
from .fit import PrivateFit, private_fit
from .judged import Settings, reported, row_length
from .rows import Length, UnitRows, rows_as_asked, unit_rows
from .second_moments import MomentParts, SecondMoments, unit_moments
from .solving import WORDS, MomentMethod, parts_of, solve_moments

LABELS_IN_LOG_ODDS = 2.0
"""Least squares on 2 y - 1 times this is four times least squares on y - 1/2."""
PARTS = {"moments": Share(1.0)}
PURE = ("laplace", "geometric")
"""Laws whose noise is scaled to l1 lengths."""


@displayed
@dataclass(frozen=True)
class MomentState:
    """What was released, and the coefficients made of it.

    Attributes
    ----------
    coef : array of shape (d,)
        Of the columns of unit rows: log-odds of labels, halves of the declared range of a number.
    gram, score : arrays of shape (d, d) and (d,)
        Products of rows, and rows times targets, as released.
    square : float
        Squared targets; zero where they were not asked for.
    noise : float
        Standard deviation of the noise on the diagonal of `gram`.
    """

    round: int
    coef: Array
    gram: Array
    score: Array
    square: float = 0.0
    noise: float = 0.0


def ask_moments(
    asked: Federation, rows: UnitRows, parts: MomentParts, scale: Array | None = None, bound: Bound | None = None
) -> tuple[SecondMoments, float]:
    """Ask for moments, and return them with the standard deviation of the noise in a number of the answer.

    Parameters
    ----------
    asked : Federation
        With records prepared by `unit_rows`, through the channel that protects this question.
    scale : array of shape (d,), optional
        By what columns are multiplied before; then `bound` is the ball.
    """
    bound = bound or parts.bound(norm_of(asked), len(rows.blocks), rows.heaviest)
    ask = partial(unit_moments, parts=parts, labels=not rows.numeric)
    level = noise_level(asked, bound, "", parts.size(rows.size))
    total = asked.sum(ask, None if scale is None else {"scale": scale}, bound=bound)
    return parts.read(total, rows.size), level


def norm_of(asked: Federation) -> int:
    """The norm in which noise is scaled: 1 for Laplace, else 2."""
    return 1 if asked.protection.law in PURE else 2


def prepared(federation: Federation, rows: UnitRows, *, planned: bool) -> Federation:
    """The federation with unit rows, records that lack a value left out; nothing is counted where a budget is planned."""
    asked = rows_as_asked(rows, federation, planned=planned)
    return cases_of_model(federation, rows.spec, count=not planned).prepare(unit_rows, spec=asked)


def rows_of(schema: Schema, settings: Settings) -> UnitRows:
    """The unit rows that settings describe."""
    given = {name: settings[name] for name in ("bins", "weights") if settings.get(name) is not None}
    return row_length(settings.get("rows"), settings["formula"], schema, log=names_of(settings.get("log")), **given)


def fit_of_state(
    federation: Federation,
    settings: Mapping[str, Any],
    coef: Array,
    method: str,
    *,
    asked_before: int,
    parts: Mapping[str, Share],
) -> PrivateFit:
    """The fit of coefficients that settings describe; `parts` are all questions that they asked."""
    rows = rows_of(schema_of(federation), settings)
    *_, last = budget_of(settings).handles(federation, parts).values()
    planned = settings.get("epsilon") is not None
    return private_fit(
        last,
        rows,
        "linear" if rows.numeric else "logistic",
        np.asarray(coef),
        method=method,
        rounds=len(parts),
        delta=settings.get("delta"),
        asked_before=asked_before,
        shares={name: part.share for name, part in parts.items()} if planned else {},
    )


def budget_of(settings: Settings) -> BudgetShares:
    """The budget that settings describe."""
    given = settings.get
    return BudgetShares(given("epsilon"), given("delta"), given("noise_at") or "server", given("least") or 0)


def moment_fit(federation: Federation, settings: Settings, state: MomentState, asked_before: int = 0) -> PrivateFit:
    """The fit of a last state."""
    words = WORDS[settings.get("method") or "ssp"]
    return fit_of_state(federation, settings, state.coef, words, asked_before=asked_before, parts=PARTS)


@program(
    "A private linear model from one noisy question of second moments: SSP, AdaSSP, functional mechanism, DPME.",
    name="private_linear",
    **reported(rows_of, moment_fit),
    case=lambda: Case(
        load("diabetes").take(range(200)), {"formula": "progression ~ bmi + bp + sex", "epsilon": 1.0, "delta": 1e-5}
    ),
)
def sufficient_moments(
    federation: Federation,
    *,
    formula: str,
    method: MomentMethod = "ssp",
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    bins: int | None = None,
    log: Sequence[str] = (),
    rows: Length | None = None,
    weights: str | None = None,
    ridge: float = 0.5,
    start: MomentState | None = None,
) -> Iterator[MomentState]:
    """Ask once for second moments of unit rows, and solve.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the ranges of all columns of the formula, target included.
    formula : str
        As of `hedgerow.stats.regression`. The target is a number, or binary.
    method : {"ssp", "adassp", "functional", "dpme"}
        How coefficients are made of the moments.
    epsilon, delta : float, optional
        The budget that this question spends; without delta, or with zero, noise is Laplace. Without epsilon the channel's
        mechanism is used as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    bins : int, optional
        So many public bins for each number of the formula.
    log : sequence of str
        Columns whose bins have equal widths on a logarithmic scale.
    rows : {"unit", "fixed"}, optional
        By what a row is divided: its own length, or the largest that there can be. By default fixed for a number, so that the
        model is an ordinary linear one whose coefficients have units (`PrivateFit.own_units`), and unit for labels.
    weights : str, optional
        Column of record weights.
    ridge : float
        Of ssp: times sqrt(d) standard deviations of the noise. The default was looked at on Adult and cardio, and is public.
    start : MomentState, optional
        Continue from this state, after which nothing is asked.

    Yields
    ------
    MomentState
        Once.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), UnboundedSum (HR-210)
        See `UnitRows.of`.
    SettingsInvalid (HR-511)
        A ridge below zero, or adassp behind Laplace noise.
    BudgetInvalid (HR-214), SlotFilled (HR-212)
        See `hedgerow.privacy.shares.BudgetShares`.

    Releases
    --------
    Second moments, once; see the module.
    """
    if not ridge >= 0:
        raise SettingsInvalid(f"ridge={ridge!r}.", remedy="Zero or more, in sqrt(d) standard deviations of the noise.")
    unit = row_length(rows, formula, schema_of(federation), bins=bins, log=names_of(log), weights=weights)
    if start is not None:
        return
    budget = BudgetShares(epsilon, delta, noise_at, least)
    records = prepared(federation, unit, planned=epsilon is not None)
    asked = budget.handles(records, PARTS, begins=True)["moments"]
    if pure := norm_of(asked) == 1:
        _refuse_pure(method)
    parts = parts_of(method, labels=not unit.numeric, pure=pure)
    moments, level = ask_moments(asked, unit, parts)
    noise = level / parts.gram
    coef = solve_moments(method, moments, noise, ridge) * (1.0 if unit.numeric else LABELS_IN_LOG_ODDS)
    yield MomentState(1, coef, moments.gram, moments.score, moments.square, noise)


def _refuse_pure(method: MomentMethod) -> None:
    if method == "adassp":
        raise SettingsInvalid(
            "adassp bounds the largest eigenvalue of Gaussian noise, and this noise is Laplace.",
            remedy="Give a delta, such as 1e-5; or method='functional', which is made for pure epsilon.",
        )


def by_moments(
    federation: Federation, formula: str, *, method: MomentMethod = "ssp", epsilon: float | None = None, **settings: Any
) -> PrivateFit:
    """Run `sufficient_moments` to its end, and make a fit; settings are its own."""
    asked_before = len(federation.ledger)
    given: dict[str, Any] = {"formula": formula, "method": method, "epsilon": epsilon, **settings}
    *_, state = sufficient_moments(federation, **given)
    return moment_fit(federation, given, state, asked_before)
