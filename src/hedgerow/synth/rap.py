"""RAP: a mixture of products, fitted by gradient to all noisy tables at once.

    singles   <- the table of (column, class), for each column, + noise                      one question, l2 sqrt(F)
    pairs     <- the table of (column, column, class), for each pair, + noise                one question, l2 sqrt(F (F-1)/2)
    mixture   <- components whose tables are nearest to all of these                         post-processing, see `mixture`
    record    a component by its share, then each column by itself                           post-processing

The questions are those of `tan`, and behind hidden rows and noise in shares they are asked alike. A tree keeps F - 1 of the
pairs, with weights of its records for the others where it is raked; a mixture is a law of its own with all pairs in it, from
which records are drawn at once, under conditions too.

    Adult, 16 bins, one to three seeds        epsilon 1: logistic, boosting, pairs      epsilon 0.1
    rap                                      85.2 %     85.3 %    .970                 83.3 %  84.3 %  .924
    tan, raked                               85.2 %     85.2 %    .973                 83.3 %  84.7 %  .924
    rap, target=""                           84.5 %     83.8 %    .969                 80.5 %  80.0 %  .924
    mst                                      79.7 %     79.9 %    .953                 78.3 %  79.0 %  .924
    real records                             85.8 %     85.8 %

With a target it is as good as `tan`. Without one, for whoever will predict one column or another, it is the better of the two
that know of no target. A fit takes some two seconds. Its hundreds of components explain nothing, where a tree can be read.

Classes are the codes of a target that is a category or binary. A target that is a number is a column as others are.

Releases : tables of one column and of two in each class, once.
State    : none at the parties.
Unit     : record.
Source   : see `mixture`. Aydore et al. 2021 choose tables in rounds by how far the model is from exact ones, which hidden rows
           do not show; all pairs at once need no choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, load
from hedgerow.data.synthetic_table import Provenance
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares
from hedgerow.report import Outcome

from .codes import Codes
from .fitting import cleaned_tables
from .measured import TablesState, measure
from .mixture import MixtureSynthesizer, fitted
from .synthesizer import provenance
from .tables import Tables, pairs, singles
from .tan import codes_of

METHOD = "rap"
COMPONENTS = 300
"""Of each class; 10 to 300 were looked at on Adult's hold-out."""
STEPS = 150
"""Of Adam; 100 to 1000 were looked at there. More of them fit tables better, and boosting learns worse from the records."""


def layouts(codes: Codes) -> tuple[Tables, Tables]:
    """Which tables are asked, of one column and of two: in each class of a target that has classes."""
    j = class_column(codes)
    if j < 0:
        return singles(codes), pairs(codes)
    own = tuple(range(codes.sizes[j]))
    return singles(codes, j, own, without=[j]), pairs(codes, j, own, without=[j])


def class_column(codes: Codes) -> int:
    """Place of the target, -1 where there is none or it is a number."""
    j = codes.place(codes.target) if codes.target else -1
    return j if j >= 0 and codes.columns[j].kind in ("category", "binary") else -1


@program(
    "Made-up records: a mixture of products, fitted to noisy tables of all pairs.",
    name="rap",
    outcome=lambda federation, settings, state: outcome(federation.schema, settings, state),
    synthesizer=lambda settings, arrays, schema, about: drawn_from(settings, arrays, schema, about),
    case=lambda: Case(
        load("fair").take(range(200)),
        {"bins": 4, "points": {"age": [22]}, "columns": ["age", "occupation", "religious"], "components": 5, "steps": 20},
    ),
)
def pair_tables(
    federation: Federation,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    bins: int | None = None,
    log: Sequence[str] = (),
    points: dict[str, list[float]] | None = None,
    components: int = COMPONENTS,
    steps: int = STEPS,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: TablesState | None = None,
) -> Iterator[TablesState]:
    """Ask for the tables to which a mixture of products is fitted.

    Other parameters and errors are as `hedgerow.synth.tan.class_trees` has them.

    Parameters
    ----------
    components : int
        Of each class. The mixture has as many times the codes of all columns as numbers.
    steps : int
        Of the fit, which asks nobody.

    Yields
    ------
    TablesState
        After each question.
    """
    if components < 1 or steps < 1:
        raise SettingsInvalid(
            f"{components!r} components and {steps!r} steps.", remedy=f"{COMPONENTS} and {STEPS} are good numbers."
        )
    coded_by = {"columns": columns, "target": target, "bins": bins, "log": log, "points": points, "epsilon": epsilon}
    codes = codes_of(federation.schema, coded_by)
    ones, twos = layouts(codes)
    if not ones.cliques:
        raise SettingsInvalid(
            f"{codes.target!r} is the only column, and no other is left to be made up.",
            remedy="Name more columns, or marginals.",
        )
    yield from measure(federation, codes, ones, twos, BudgetShares(epsilon, delta, noise_at, least), start)


def rap(
    federation: Federation,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    bins: int | None = None,
    log: Sequence[str] = (),
    points: dict[str, list[float]] | None = None,
    components: int = COMPONENTS,
    steps: int = STEPS,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> MixtureSynthesizer:
    """Return what made-up records are drawn from: a mixture of products that is fitted to all pairs of columns.

    Parameters, releases and errors are those of `pair_tables`.

    Returns
    -------
    MixtureSynthesizer
        `.sample(1000, where={"sex": "Female"}, seed=0)` draws records, under conditions exactly; it asks nobody.
    """
    settings: dict[str, Any] = {
        "target": target,
        "columns": columns,
        "bins": bins,
        "log": log,
        "points": points,
        "epsilon": epsilon,
    }
    settings |= {"components": components, "steps": steps}
    *_, state = pair_tables(federation, **settings, delta=delta, noise_at=noise_at, least=least)
    arrays = mixture_of(federation.schema, settings, state)
    return drawn_from(settings, arrays, federation.schema, provenance(federation, METHOD, delta=delta or None))


def mixture_of(schema: Schema, settings: Mapping[str, Any], state: TablesState) -> dict[str, Array]:
    """Fit a mixture to tables that were asked: `weights` (classes, components) and `shares` (classes, components, codes).

    Where the fit starts is drawn from a fixed seed, so that the same tables give the same mixture.
    """
    codes = codes_of(schema, settings)
    ones, twos = layouts(codes)
    _, nodes, tables = cleaned_tables(state, ones, twos if state.round > 1 else None)
    others = [j for j in range(len(codes.columns)) if j != class_column(codes)]
    weights, shares = fitted(
        [np.stack([own[j] for own in nodes]) for j in others],
        {(others.index(i), others.index(j)): np.stack(list(found)) for (i, j), found in tables.items()},
        components=settings["components"],
        steps=settings["steps"],
        rng=np.random.default_rng(0),
    )
    return {"weights": weights, "shares": shares}


def drawn_from(
    settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance
) -> MixtureSynthesizer:
    """What records are drawn from, given the arrays of an outcome."""
    codes = codes_of(schema, settings)
    return MixtureSynthesizer(codes, about, class_column(codes), arrays["weights"], arrays["shares"])


def outcome(schema: Schema, settings: Mapping[str, Any], state: TablesState) -> Outcome:
    """Sizes, noise, and all that records are drawn from."""
    ones, twos = layouts(codes_of(schema, settings))
    totals, *_ = cleaned_tables(state, ones, twos if state.round > 1 else None)
    noise = {"noise per cell of one column": state.sigma_singles, "noise per cell of two columns": state.sigma_pairs}
    counted = "records, from noisy tables" if state.sigma_singles else "records"
    return Outcome(
        metrics={counted: float(sum(totals)), **noise},
        arrays=mixture_of(schema, settings, state),
        notes=["Sizes are those of the tables that were released, their noise included."],
    )
