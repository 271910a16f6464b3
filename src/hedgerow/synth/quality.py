"""Quality by sums: made-up records beside real ones that stay where they are.

    ones      <- how many real records lie in each fine bin or level of each column, + noise       one question
    pairs     <- how many have each pair of codes of each two columns, + noise                     one question
    server:   the same counts of made-up records, and what they differ by

Both questions are releases of real records: they are charged like any other, with a budget of their own (`epsilon`) or through
the channel. Exact answers are refused where made-up records carry an epsilon, which they would void. What a synthesizer has
measured anyway costs nothing more: `measured_quality` compares with its noisy tables, and its figures are biased by that noise.

A record adds its weight to one cell of each of f tables, and of each of f (f - 1) / 2: l2 the root of that, l1 that.

KS complements are those of bins, at least as high as those of values: nothing inside a bin is looked at, so that made-up
records which spread over a bin where real ones heap at one value look better than they are. `compared` has both tables, and
no bins.

Releases : both, once. State : none at the parties. Unit : record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, Table, complete_cases, load, read
from hedgerow.data.synthetic_files import declared_by
from hedgerow.data.synthetic_table import SyntheticTable
from hedgerow.display import displayed
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from .assessed import NUMBERS, Quality
from .codes import Codes, coded
from .counted import CountedTables, counted, of_sums
from .metrics import ks_complement
from .synthesizer import MIXED, Synthesizer, provenance
from .tables import Tables, pairs, singles
from .tstr import refuse_other_columns, tstr

ONES = 0.3
"""Share of a budget for tables of one column, where those of pairs are asked too: that of the synthesizers."""
DRAWN = 20_000
"""Records of which a synthesizer's own report has pictures, at most."""
ROWS = 1000
"""Records that are drawn from the declaration alone where no file of made-up records is named."""


@displayed
@dataclass(frozen=True)
class QualityState:
    """Tables of the real records that were asked so far.

    Attributes
    ----------
    round : int
        Questions so far.
    ones, pairs : array of shape (cells,)
        Tables of one column, and of two; of two none before they are asked.
    sigma_ones, sigma_pairs : float
        Standard deviation of the noise in each cell; zero where tables are exact.
    """

    round: int
    ones: Array = field(default_factory=lambda: np.zeros(0))
    pairs: Array = field(default_factory=lambda: np.zeros(0))
    sigma_ones: float = 0.0
    sigma_pairs: float = 0.0


def made_records(schema: Schema, settings: Mapping[str, Any]) -> Table:
    """The made-up records that a study names; without a file, records drawn from the declaration alone."""
    names = settings.get("columns")
    schema = schema if names is None else schema.select(list(names))
    if settings.get("file"):
        path = Path(settings["file"])
        return written(path, schema)
    drawn = schema.synthetic(ROWS, np.random.default_rng(0))
    return Table(drawn, schema, name="declared", source="Records drawn from the declaration alone.")


def written(path: Path, schema: Schema) -> Table:
    """Records of a file, with what its metadata say of them where there are any: what was promised stays promised."""
    own = declared_by(path)
    names = schema.names if own is None else [name for name in own.names if name in schema]
    table = read(path, schema=schema.select(names))
    promised = table.provenance.privacy if isinstance(table, SyntheticTable) else ""
    return replace(table, name="made-up", source=f"Made-up records of {path.name}. {promised}".strip())


@program(
    "How good made-up records are: tables of real ones beside theirs.",
    name="synthetic_quality",
    keys={
        "file": Key(str, "", "The .csv or .parquet file of made-up records; without one, records drawn from the schema alone.")
    },
    bind={"made": made_records},
    outcome=lambda federation, settings, state: outcome_of(federation.schema, settings, state),
    watch=lambda settings, state, schema, test: watch(settings, schema, test),
    case=lambda: Case(
        load("fair").take(range(200)), {"columns": ["age", "occupation", "religious"], "bins": 8, "pair_bins": 4}
    ),
)
def real_tables(
    federation: Federation,
    made: Table,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 64,
    pair_bins: int = 16,
    log: Sequence[str] = (),
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: QualityState | None = None,
) -> Iterator[QualityState]:
    """Ask for the real records' tables with which made-up records are compared.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every number; noise needs that of a weight, too.
    made : Table
        Made-up records.
    columns : sequence of str, optional
        Which are compared; by default those that were made up.
    bins, pair_bins : int
        Bins of a number where columns are compared one by one, and in pairs. Finer bins see more, and have more noise.
    log : sequence of str
        Numbers whose bins have equal widths on a logarithmic scale, such as amounts of money.
    epsilon, delta : float, optional
        A budget for this alone: three tenths for single columns, the rest for pairs. Without it each question is asked through
        the channel as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.
    start : QualityState, optional
        Continue from this state.

    Yields
    ------
    QualityState
        After each question.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409), SlotFilled (HR-212)
        Before any party is asked; see `Codes.of` and `BudgetShares`.
    BudgetInvalid (HR-214)
        The made-up records, or the ledger, promise an epsilon, and these questions would be exact.
    UnboundedSum (HR-210)
        Noise is added, and weights declare no range.
    """
    fine, coarse = codes_of(federation.schema, made.schema, columns, bins, pair_bins, log)
    refuse_other_columns(fine, made, "the made-up table")
    if start is None:
        refuse_exact(federation, made, epsilon)
    federation = complete_cases(federation, [], count=False)  # a record without a weight counts for nothing
    parts = {"ones": Share(ONES), "pairs": Share(1 - ONES)} if len(fine.columns) > 1 else {"ones": Share(1.0)}
    asked = BudgetShares(epsilon, delta, noise_at, least).handles(federation, parts, begins=start is None)
    state = start or QualityState(0)
    if state.round == 0:
        handle, layout = asked["ones"].prepare(coded, codes=fine), singles(fine)
        sigma = layout.sigma(handle, fine.heaviest)
        state = replace(state, round=1, ones=layout.ask(handle, fine.heaviest), sigma_ones=sigma)
        yield state
    if state.round == 1 and "pairs" in asked:
        handle, layout = asked["pairs"].prepare(coded, codes=coarse), pairs(coarse)
        sigma = layout.sigma(handle, coarse.heaviest)
        yield replace(state, round=2, pairs=layout.ask(handle, coarse.heaviest), sigma_pairs=sigma)


def quality(
    federation: Federation,
    made: Table,
    *,
    test: Table | None = None,
    columns: Sequence[str] | None = None,
    bins: int = 64,
    pair_bins: int = 16,
    log: Sequence[str] = (),
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> Quality:
    """Compare made-up records with real ones at their parties; parameters, releases and errors are those of `real_tables`.

    Parameters
    ----------
    test : Table, optional
        Public hold-out records: models of the made-up records are scored on them (`tstr`), which costs nothing. Another target
        than the made-up table's, or other bins, take a call of `tstr`.

    Returns
    -------
    Quality
        `.summary()`, `.to_frame()`, `.pairs`, `.correlations`, and `.outcome()` for a report.
    """
    settings: dict[str, Any] = {"columns": columns, "bins": bins, "pair_bins": pair_bins, "log": log}
    *_, state = real_tables(federation, made, **settings, epsilon=epsilon, delta=delta, noise_at=noise_at, least=least)
    found = quality_of(federation.schema, settings, state, made)
    return found if test is None else replace(found, utility=tstr(made, test, log=_among(log, made)))


def measured_quality(codes: Codes, made: Table, layouts: Iterable[tuple[Tables, Array, float]]) -> Quality:
    """Compare made-up records with the noisy tables that they were made from: no question, no cost.

    The real side is what a synthesizer measured, its noise included, so that every similarity is lowered by noise; and tables
    that it did not measure are not compared. A synthesizer that copies its noise looks better than it is.

    Parameters
    ----------
    codes : Codes
        The synthesizer's.
    made : Table
        Records that it made.
    layouts : iterable of (Tables, array (size,), float)
        What it asked, the answers, and the standard deviation of the noise in each cell.
    """
    real = of_sums(layouts)
    text = "The real side is the tables that the synthesizer measured; nothing more was asked, and nothing more is spent."
    return Quality(codes, codes, real, counted(made, codes, codes, real.counts), f"{text} {_noise_sentence(real)}".strip())


def pictured(outcome: Outcome, synthesizer: Synthesizer, total: float, asked: Iterable[tuple[Tables, Array, float]]) -> Outcome:
    """An outcome with pictures of records drawn from a synthesizer, beside the tables that it measured: at no cost.

    As many records are drawn as the tables have, and `DRAWN` at most.
    """
    made = synthesizer.sample(int(np.clip(np.rint(total), 1, DRAWN)), seed=0)
    seen = measured_quality(synthesizer.codes, made, asked).outcome()
    notes = [*outcome.notes, f"Pictures are of {len(made)} made-up records. {' '.join(seen.notes)}"]
    return replace(outcome, tables={**outcome.tables, **seen.tables}, bars=seen.bars, heats=seen.heats, notes=notes)


def compared(
    real: Table,
    made: Table,
    *,
    test: Table | None = None,
    columns: Sequence[str] | None = None,
    bins: int = 64,
    pair_bins: int = 16,
    log: Sequence[str] = (),
) -> Quality:
    """Compare two tables that are both at hand: in a simulation, or at the party that holds the records.

    Nobody is asked and nothing is charged: what it says of the real records is exact, and no party that promised privacy may
    publish it. KS complements are those of the values; models are fitted on the real records, too (`tstr`).

    Parameters
    ----------
    real, made : Table
    test : Table, optional
        Hold-out records, for `tstr`.
    columns, bins, pair_bins, log
        As of `real_tables`.
    """
    fine, coarse = codes_of(real.schema, made.schema, columns, bins, pair_bins, log)
    refuse_other_columns(fine, made, "the made-up table")
    if not len(real) or not len(made):
        raise SettingsInvalid(f"{len(real)} real and {len(made)} made-up records.", remedy="Give tables with records.")
    cliques = [*singles(fine).cliques, *pairs(fine).cliques]
    exact = {c.name: ks_complement(real[c.name], made[c.name]) for c in fine.columns if c.kind in NUMBERS}
    return Quality(
        fine,
        coarse,
        counted(real, fine, coarse, cliques),
        counted(made, fine, coarse, cliques),
        "The real side is the real records themselves: exact, not charged, and no party's to publish under a promise.",
        exact_ks=exact,
        utility=None if test is None else tstr(made, test, real=real.select(list(made.columns)), log=_among(log, made)),
    )


def codes_of(
    schema: Schema, made: Schema, columns: Sequence[str] | None, bins: int, pair_bins: int, log: Sequence[str]
) -> tuple[Codes, Codes]:
    """Fine codes for single columns and coarse ones for pairs, of the columns that both tables have."""
    names = [name for name in made.names if name in schema] if columns is None else list(columns)
    fine, coarse = (Codes.of(schema, columns=names, bins=one, log=log) for one in (bins, pair_bins))
    return fine, coarse


def quality_of(schema: Schema, settings: Mapping[str, Any], state: QualityState, made: Table) -> Quality:
    """The comparison that a state allows."""
    fine, coarse = codes_of(schema, made.schema, *(settings[name] for name in ("columns", "bins", "pair_bins", "log")))
    layouts = [(singles(fine), state.ones, state.sigma_ones)]
    if len(state.pairs):
        layouts.append((pairs(coarse), state.pairs, state.sigma_pairs))
    real = of_sums(layouts)
    said = "The real side is sums over the parties, which are a release of their records."
    source = f"{said} {_noise_sentence(real) or 'They are exact: nothing protects them.'}"
    if not real.noisy and not state.ones.any():
        source += " All weights are zero, so that there is nothing to compare with."
    return Quality(fine, coarse, real, counted(made, fine, coarse, real.counts), source)


def outcome_of(schema: Schema, settings: Mapping[str, Any], state: QualityState) -> Outcome:
    """What a report shows of a state."""
    made = made_records(schema, settings)
    found = quality_of(schema, settings, state, made).outcome()
    return replace(found, notes=[*found.notes, made.source], arrays={"ones": state.ones, "pairs": state.pairs})


def watch(settings: Mapping[str, Any], schema: Schema, test: Table | None) -> dict[str, float]:
    """Scores of models of the made-up records on the server's table."""
    made = made_records(schema, settings)
    return {} if test is None or not made.schema.target else tstr(made, test, log=_among(settings["log"], made)).named()


def refuse_exact(federation: Federation, made: Table, epsilon: float | None) -> None:
    """Refuse exact sums beside a promise that they would void.

    Raises
    ------
    BudgetInvalid (HR-214)
    """
    if epsilon is not None or federation.protection.noisy:
        return
    own = made.provenance.epsilon if isinstance(made, SyntheticTable) else None
    asked = provenance(federation, "") if len(federation.ledger) else None
    spent = asked is not None and (asked.unit == MIXED or bool(asked.epsilon))
    if own is None and not spent and federation.ledger.limit is None:
        return
    whose = f"the made-up records promise epsilon={own:.4g}" if own is not None else "the ledger promises a finite epsilon"
    raise BudgetInvalid(
        f"{whose}, and exact sums of the real records would void it.",
        remedy="Give epsilon= and delta= for this comparison; or compare with the tables that were measured anyway, at no "
        "cost: hedgerow.synth.measured_quality; or in a simulation with the records themselves: hedgerow.synth.compared.",
    )


def _noise_sentence(real: CountedTables) -> str:
    if not real.noisy:
        return ""
    ones, twos = ([sigma for clique, sigma in real.sigmas.items() if len(clique) == k] for k in (1, 2))
    told = [f"{max(them):.4g} in each {what}" for them, what in ((ones, "bin or level"), (twos, "cell of a pair")) if them]
    return (
        f"It has noise of standard deviation {' and '.join(told)}, which lowers similarities: a table as good as the real one "
        "scores less than 1 by about what is said beside each column."
    )


def _among(log: str | Sequence[str], made: Table) -> list[str]:
    return [name for name in ([log] if isinstance(log, str) else log) if name in made.schema]
