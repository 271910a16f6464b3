"""Multiple imputation by chained equations, by sums, and analyses of all completed copies at once.

    start     mean and deviation of each incomplete column                        sum, once; parties draw
    for each sweep, for each incomplete column:
        model     of the m copies: Gram matrices, or steps of logistic models     sum, one question for all copies
        draw      coefficients and deviation of each copy                         at the server
        values    of the records that lack the column, kept by each party         each; nothing leaves
    analysis  score and information of the m copies at their own coefficients     sum, one question for all copies, a round
    pool      by Rubin's rules

Models are those of all parties together, so a column that one site lacks wholly is filled there by what other sites know. That
is an assumption, and no party can test it.

Draws are parties' own, and so are drawn values. Noise is refused: thousands of noisy numbers would drown the models, and the
rules would not know it.

Releases : records with each incomplete column, their sum and squares, once; m (p + 1)(p + 2) / 2 numbers for each normal model,
           m (p + p (p + 1) / 2) + 1 for each step of a logistic one; then m times what a regression releases, once a round.
Unit     : record.
Source   : van Buuren 2018; Rubin 1987; Barnard & Rubin 1999; Chang et al. 2020 (federated). Differs: models are normal and
           logistic; logistic ones have a weak pull (`hedgerow.stats.imputation.equations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.report import Outcome

from ..columns import heaviest, is_exact, schema_of
from ..provenance import left_of, protection_of
from .analysis import analysed, design_for
from .chain import ColumnChain, begin, copies_gram, copies_logistic, draw, nothing_drawn, observed
from .equations import DrawnModels, logistic_draws, normal_draws
from .pooled import PooledFit

Family = Literal["gaussian", "binomial", "poisson"]
READ = ("feature", "target", "time", "event", "treatment")
SWEEPS = 10
COPIES = 10


@displayed
@dataclass(frozen=True)
class ImputedState:
    """After the start, after each column that was drawn, and at the end.

    Attributes
    ----------
    sweep, place : int
        Whole sweeps so far, and columns drawn of this one.
    have : array of shape (k, 3)
        Of each incomplete column records that have it, their sum and squares, in units of half its range about the middle.
    at : dict of arrays
        By column, coefficients (copies, p) of the last model.
    n : float
        Records; known at the end.
    coefs, covariances : arrays of shape (copies, d) and (copies, d, d)
        Of the analysis; empty before it.
    """

    round: int
    sweep: int
    place: int
    have: Array
    at: dict[str, Array] = field(default_factory=dict)
    n: float = 0.0
    coefs: Array = field(default_factory=lambda: np.zeros((0, 0)))
    covariances: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))


def _gaps() -> Table:
    """Patients of whom some lack a value, for the program's case."""
    table = load("diabetes").take(range(200))
    rng, columns = np.random.default_rng(0), dict(table.columns)
    for name in ("bmi", "s5"):
        columns[name] = np.where(rng.random(len(table)) < 0.2, np.nan, columns[name])
    optional = tuple(replace(c, optional=True) if c.name in ("bmi", "s5") else c for c in table.schema)
    return Table(columns, Schema(optional))


@program(
    "A regression over copies that chained equations have completed, pooled by Rubin's rules.",
    name="imputed_regression",
    outcome=lambda federation, settings, state: show_imputed(federation, settings, state),
    case=lambda: Case(
        _gaps(),
        {"formula": "progression ~ bmi + s5", "columns": ["bmi", "s5", "age", "progression"], "copies": 3, "sweeps": 2},
        tolerance=1e-6,
    ),
)
def imputed_rounds(
    federation: Federation,
    *,
    formula: str | None = None,
    family: Family = "gaussian",
    columns: Sequence[str] | None = None,
    copies: int = COPIES,
    sweeps: int = SWEEPS,
    squeeze: bool = False,
    draws: bool = True,
    start: ImputedState | None = None,
) -> Iterator[ImputedState]:
    """Complete copies by chained equations, then fit a regression to all of them.

    Parameters
    ----------
    formula : str, optional
        Of the regression; without one copies are completed and nothing more.
    family : {"gaussian", "binomial", "poisson"}
        Of its target.
    columns : sequence of str, optional
        The chain: columns that are imputed, and those that help; all features and targets by default. It holds every column of
        the formula, the target above all.
    copies : int
        At least 2.
    sweeps : int
        Times that each column is drawn.
    squeeze : bool
        Whether drawn numbers are held within declared ranges, as where a formula takes their logarithm; otherwise within twice
        as far from the middle.
    draws : bool
        Whether values are drawn; otherwise each is what its model expects, so that copies are alike and errors too small.

    Yields
    ------
    ImputedState
        After the start, after each column, and after the regression.

    Releases
    --------
    See the module.

    Raises
    ------
    SchemaInvalid (HR-409), SettingsInvalid (HR-511), FormulaInvalid (HR-310)
        Before any party is asked: a category of several levels may be missing; the formula reads a column that is not whole.
    UnboundedSum (HR-210)
        The channel adds noise or clips; or it hides rows, and a column declares no range.
    NotIdentified (HR-320), NotConverged (HR-322)
        A model of the chain, or the regression of a copy.
    StateLost (HR-615)
        What a party had drawn was lost.

    Source
    ------
    van Buuren 2018; Rubin 1987.
    """
    chain = chain_of(schema_of(federation), columns, copies, squeeze=squeeze)
    if sweeps < 1:
        raise SettingsInvalid(f"sweeps={sweeps}.", remedy="Give 10, or more where much is missing.")
    if not is_exact(federation):
        raise UnboundedSum(
            "noise or a clip on the sums of a chain would drown its models, and Rubin's rules would not know it.",
            remedy="Ask through a channel without noise; or take complete cases, which private regressions read.",
        )
    if formula is not None:
        design_for(federation, chain, formula, family)  # refused before anybody is asked
    asked = _AskedChain(federation, chain, draws)
    state = start
    if state is None:
        state = ImputedState(1, 0, 0, asked.begin())
        yield state
    while state.sweep < sweeps:
        target = chain.incomplete[state.place]
        drawn = asked.advance(target, state.at.get(chain.columns[target].name), state.round)
        after = state.place + 1
        at = state.at | {chain.columns[target].name: drawn.at}
        state = replace(
            state,
            round=state.round + 1,
            sweep=state.sweep + after // len(chain.incomplete),
            place=after % len(chain.incomplete),
            at=at,
        )
        yield state
    if formula is not None and not len(state.coefs):
        coefs, covariances, n = analysed(federation, chain, formula, family)
        yield replace(state, round=state.round + 1, coefs=coefs, covariances=covariances, n=n)


def chain_of(schema: Schema, columns: Sequence[str] | None, copies: int, *, squeeze: bool) -> ColumnChain:
    """The chain of these columns, or of all features and targets."""
    names = [c.name for c in schema if c.role in READ and not c.shape] if columns is None else list(columns)
    return ColumnChain.of(schema, tuple(dict.fromkeys(names)), copies, squeeze=squeeze)


@dataclass(frozen=True)
class _AskedChain:
    """A chain as its sums are asked for."""

    federation: Federation
    chain: ColumnChain
    noise: bool

    def begin(self) -> Array:
        """Ask for means and deviations, and let parties draw from them."""
        have: Array = self.federation.sum(partial(observed, chain=self.chain), bound=self._bound(self.chain.room**2))
        n = have[:, 0]
        if not (n > 1).all():
            lost = self.chain.columns[self.chain.incomplete[int(np.argmin(n))]].name
            raise SettingsInvalid(f"no two records have {lost!r}.", remedy="Leave it out of the chain.", asked=True)
        mean = have[:, 1] / n
        sd = np.sqrt(np.maximum(have[:, 2] / n - mean**2, 0.0))
        settings = {"chain": self.chain, "noise": self.noise}
        init = partial(nothing_drawn, chain=self.chain)
        self.federation.each(partial(begin, **settings), {"mean": mean, "sd": sd}, init=init)
        return have

    def advance(self, target: int, before: Array | None, number: int) -> DrawnModels:
        """Fit the models of a column, draw their coefficients, and let parties draw values."""
        chain, name = self.chain, self.chain.columns[target].name
        rng = self.federation.stream(number, "models of a chain").generator
        settings = {"chain": chain, "target": target}
        if chain.is_event(target):
            p = 1 + chain.size - 1
            at = np.zeros((chain.copies, p)) if before is None else before
            bound = self._logistic_bounds()
            found = logistic_draws(
                lambda beta: self.federation.sum(partial(copies_logistic, **settings), beta, bound=bound),
                at,
                rng,
                name,
                noise=self.noise,
            )
        else:
            gram = self.federation.sum(partial(copies_gram, **settings), bound=self._bound(chain.room**2))
            found = normal_draws(gram, rng, name, noise=self.noise)
        broadcast = {"beta": found.beta, "sd": found.sd}
        self.federation.each(partial(draw, **settings, noise=self.noise), broadcast)
        return found

    def _bound(self, limit: float) -> Bound | None:
        """Of each number of a record; `None` where none is needed or known.

        Raises
        ------
        UnboundedSum (HR-210)
        """
        protection, weight = self.federation.protection, heaviest(schema_of(self.federation))
        if not protection.hides_rows:
            return None
        if not self.chain.declared or weight is None:
            if protection.largest is not None:
                return None
            open_ = [c.name for c in self.chain.columns if c.kind in ("number", "integer") and None in (c.low, c.high)]
            raise UnboundedSum(
                f"{', '.join(open_) or 'the weight'} declares no range, and an aggregation that hides rows needs one.",
                remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
            )
        return linf(weight * max(limit, 1.0) * (1 + 1e-9), "record")

    def _logistic_bounds(self) -> dict[str, Bound] | None:
        room = self.chain.room
        found = {"score": self._bound(room), "information": self._bound(room**2 / 4), "n": self._bound(1.0)}
        return None if found["n"] is None else {key: bound for key, bound in found.items() if bound is not None}


# ---- results --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Imputed:
    """A federation whose parties have completed copies of their records; made by `impute`.

    Attributes
    ----------
    federation : Federation
    chain : ColumnChain
    state : ImputedState
        The last one of the chain.
    asked_before : int
        Length of the ledger before the chain.
    """

    federation: Federation
    chain: ColumnChain
    state: ImputedState
    asked_before: int = 0

    def regression(self, formula: str, family: Family = "gaussian") -> PooledFit:
        """Fit a regression to every copy, one question for all of them a round, and pool by Rubin's rules.

        Releases
        --------
        m times score, information, n, deviance, and the target's sum and squares; once a round.
        """
        coefs, covariances, n = analysed(self.federation, self.chain, formula, family)
        state = replace(self.state, coefs=coefs, covariances=covariances, n=n)
        return _pooled(self.federation, self.chain, formula, family, state, self.asked_before)

    def linear_regression(self, formula: str) -> PooledFit:
        """Linear regression over the copies."""
        return self.regression(formula, "gaussian")

    def logistic_regression(self, formula: str) -> PooledFit:
        """Logistic regression over the copies."""
        return self.regression(formula, "binomial")


def _pooled(
    federation: Federation, chain: ColumnChain, formula: str, family: Family, state: ImputedState, asked_before: int
) -> PooledFit:
    have = dict(zip((chain.columns[i].name for i in chain.incomplete), state.have[:, 0].tolist(), strict=True))
    return PooledFit(
        spec=design_for(federation, chain, formula, family),
        family=family,
        coefs=state.coefs,
        covariances=state.covariances,
        n_records=state.n,
        imputed={name: max(1 - n / state.n, 0.0) for name, n in have.items()},
        sweeps=state.sweep,
        rounds=len(federation.ledger) - asked_before,
        n_parties=round(federation.expected_size),
        n_missing=federation.missing,
        left=left_of(federation, asked_before),
        protection=protection_of(federation),
    )


def imputed_fit(federation: Federation, settings: Mapping[str, Any], state: ImputedState) -> PooledFit:
    """Turn the last state of `imputed_rounds`, which ran with these settings, into a fit."""
    copies, squeeze = settings.get("copies", COPIES), settings.get("squeeze", False)
    chain = chain_of(schema_of(federation), settings.get("columns"), copies, squeeze=squeeze)
    return _pooled(federation, chain, settings["formula"], settings.get("family", "gaussian"), state, 0)


def show_imputed(federation: Federation, settings: Mapping[str, Any], state: ImputedState) -> Outcome:
    """The pooled fit; of a chain without a formula how much was missing."""
    if settings["formula"] is None:
        return Outcome(notes=(f"{state.sweep} sweeps; parties keep the completed copies.",))
    fit = imputed_fit(federation, settings, state)
    frame = fit.to_frame()
    return Outcome(tables={"Coefficients": frame}, text={"Summary": fit.summary()}, coefficients=frame)


def impute(
    federation: Federation,
    columns: Sequence[str] | None = None,
    *,
    copies: int = COPIES,
    sweeps: int = SWEEPS,
    squeeze: bool = False,
    draws: bool = True,
) -> Imputed:
    """Complete copies of all parties' records by chained equations; then fit with `Imputed.regression`.

    Parameters
    ----------
    columns : sequence of str, optional
        The chain: columns that are imputed, and those that help; all features and targets by default. Name every column that a
        later formula reads, its target above all: a chain without it pulls coefficients to zero.
    copies, sweeps, squeeze, draws
        As `imputed_rounds`.

    Returns
    -------
    Imputed
        Its parties keep the values that they drew, as long as nobody imputes the same chain anew.
    """
    asked_before = len(federation.ledger)
    settings: dict[str, Any] = {"columns": columns, "copies": copies, "squeeze": squeeze}
    *_, state = imputed_rounds(federation, sweeps=sweeps, draws=draws, **settings)
    return Imputed(federation, chain_of(schema_of(federation), columns, copies, squeeze=squeeze), state, asked_before)
