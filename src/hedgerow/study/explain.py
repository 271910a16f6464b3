"""From a finished run to its report: what was learned, what it cost, what left each party."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from hedgerow.core.judged_rows import in_all
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.data import LabelCounts as PartitionHeat
from hedgerow.privacy import Budget
from hedgerow.privacy.statement import Statement, statement
from hedgerow.report import Comparison, Curve, Grid, Heat, Outcome, Report, Series
from hedgerow.report.frames import grid_of
from hedgerow.report.model import Cell, curve_from
from hedgerow.store import Driven

from .agreed import agreed_delta, budget_grids, forecast_grids
from .attacked import attack_grids, lying_facts, sentence
from .baselines import Baselines
from .build import Built
from .disclosed import disclosure_sentence
from .findings.page import area_headline, cautions
from .flow import flow_of, records_left_out
from .judged import judged_facts, judged_grids
from .keys import divides_budget
from .learned import nothing_learned
from .published import exposed, published, table_of
from .rounds import FIGURES, Row, best, first_metric, metrics_of, reached
from .study import Study
from .witnesses import given_away, who_saw_what

EPSILON_POINTS = 12
"""At most so many points of the epsilon curve are computed."""
LEAST_POINTS = 3
"""Fewer are no curve: the numbers stand at the top of the page."""


def explain(
    built: Built,
    ended: Driven,
    outcome: Outcome,
    compared: Baselines,
    history: Sequence[Row],
    twin: Mapping[str, float] | None = None,
    *,
    seconds: float,
    warnings: tuple[str, ...],
    command: str,
) -> Report:
    """Put a run into words, tables and figures; `twin` has the metrics of its clean twin, where there is one."""
    study, federation, run = built.study, built.federation, built.run
    said = statement_of(built, run.ledger)
    rounds = history[-1]["round"] if history else ended.state.round if ended.state else 0
    taken = f"{rounds} round{'s' * (rounds != 1)}"
    top = best(history, first_metric(history) or "")
    endings = {
        "finished": f"finished after {taken}",
        "budget": f"stopped by the budget after {taken}",
        "patience": f"stopped at its target after {taken}"
        if study.evaluation.stop and reached(history, first_metric(history) or "", study.evaluation.target or 0.0)
        else f"stopped early after {taken}" + (f", best in round {top[0]}" if top else ""),
    }
    held = next((row for row in history if ended.state is not None and row["round"] == ended.state.round), None)
    held_row = metrics_of(held or history[-1]) if history else {}
    stations = getattr(run.engine, "stations", ())
    nothing = "" if ended.stopped == "interrupted" else nothing_learned(built, history, outcome.metrics, compared, ended.state)
    notes = [built.table.source]
    if ended.reason:
        notes.insert(0, f"The run stopped: {ended.reason}")
    if held is not None and held is not history[-1]:
        notes.insert(0, f"The result is the model of round {held['round']}, in which {first_metric(history)} was best.")
    refused, came = in_all(run.judged)
    if lost := federation.missing:
        notes.insert(0, f"{lost} answers never came: the parties that dropped out are not in those sums.")
    if refused:
        notes.insert(0, f"{refused} of {came} rows were refused, since they were not proved: they are in no sum.")
    notes.append(said.disclosed)
    if lied := sentence(built):
        notes.insert(0, lied)
    if compared.federated is not None:
        notes.append(
            "Baselines and per-party metrics are computed by the simulator, which holds all records; a deployment has none."
        )
    labels = built.settings.get("labels", {}) if outcome.headlines else {}
    area = area_headline(held_row, labels) if outcome.headlines else None
    report = Report(
        title=study.title or study.name,
        study=study.name,
        description=study.description or sentence_of(built),
        nothing=nothing,
        privacy=said.sentence,
        exposed=said.exposed,
        privacy_ok=said.private,
        privacy_weak=said.weak,
        facts=(
            ("parties", federation.size),
            *lying_facts(built),
            *judged_facts(history),
            *((("stations", ", ".join(stations)),) if stations else ()),
            ("records", len(built.table) if built.simulated else "at the stations" if stations else "not shown"),
            ("program", study.program.name),
            ("run", endings.get(ended.stopped, f"interrupted after {taken}")),
            ("questions asked", len(run.ledger)),
            *((("head of the ledger", run.ledger.record.head),) if run.ledger.record else ()),
            *traffic(run.ledger.entries),
            ("engine", f"{type(run.engine).__name__}"),
            ("seconds", round(seconds, 2)),
            *target_facts(history, study.evaluation.target),
        ),
        metrics=tuple(outcome.metrics.items()) + with_intervals(held_row),
        curves=(
            *outcome.curves,
            *map(curve_from, history[-1].get(FIGURES, ()) if history else ()),
            *metric_curves(history, compared, study.evaluation.target),
            *epsilon_curve(built),
        ),
        heat=heat_of(built.partition.heat, built.partition.sentence) if built.simulated else None,
        comparison=comparison_of(built, compared, useful=not nothing),
        parties=party_grid(built, compared),
        left=what_left(run.ledger.entries, federation.protection.shows),
        published=table_of(said.published),
        tables=(
            *forecast_grids(study, outcome.metrics, simulated=built.simulated, finished=ended.stopped == "finished"),
            *budget_grids(run.ledger),
            *attack_grids(built, held_row, twin or {}),
            *judged_grids(history, run),
            *outcome.grids,
            *(grid_of(title, frame) for title, frame in outcome.tables.items()),
            *(() if outcome.headlines else records_left_out(built)),
        ),
        text=tuple(outcome.text.items()),
        notes=tuple(note for note in (*notes, *outcome.notes) if note),
        warnings=warnings,
        provenance=provenance(study, command),
        tables_first=outcome.coefficients is not None,
        dots=tuple(outcome.dots),
        bars=tuple(outcome.bars),
        heats=tuple(outcome.heats),
        pictures=tuple(outcome.pictures),
        forests=tuple(outcome.forests),
        flows=(*outcome.flows, *(flow_of(built, labels) if outcome.headlines else ())),
        headlines=tuple(filter(None, (*outcome.headlines, area))) if outcome.headlines else (),
        witnesses=who_saw_what(built, tuple(outcome.forests)) if outcome.headlines else None,
    )
    if not outcome.headlines:
        return report
    told = given_away(built, report.forests, said.sentence, report.promise[0])
    found = "".join(f" {forest.sentence.partition(' (')[0].rstrip('.')}." for forest in report.forests[:1] if forest.sentence)
    lead = f"{report.description}{found}"
    return replace(report, description=lead, privacy=told, warnings=(*warnings, *cautions(federation, labels)))


def sentence_of(built: Built) -> str:
    """What the program does, as it says itself; that a fit is the pooled one only where nothing is clipped or noised."""
    does, _, claim = built.listing.sentence.partition(";")
    if "pooled" not in claim:
        return built.listing.sentence
    exact = built.federation.protection.exact
    return f"{does}; equal to the pooled fit." if exact else f"{does}; behind clip or noise, so not the pooled fit."


def planned_delta(settings: Mapping[str, Any]) -> float | None:
    """The delta of a program with a budget of its own."""
    planned = settings.get("delta") if settings.get("epsilon") is not None else None
    return planned if isinstance(planned, float) else None


def statement_of(built: Built, ledger: Ledger) -> Statement:
    """The privacy statement of a study: of its ledger, and of everything else that a run publishes."""
    units = {"party": built.federation.size, "record": len(built.table)}
    said = statement(ledger, units, delta=planned_delta(built.settings) or agreed_delta(built.study.party_budgets))
    found = published(built, ledger)
    return replace(said, published=found, exposed=exposed(built, found), disclosed=disclosure_sentence(built, ledger))


def with_intervals(metrics: Mapping[str, float]) -> tuple[tuple[str, Cell], ...]:
    """Metrics in their order; instead of a standard error the 95 % interval, normal and within 0 and 1."""
    shown: list[tuple[str, Cell]] = []
    for name, value in metrics.items():
        of = name.removesuffix(" standard error")
        if of == name or of not in metrics:
            shown.append((name, value))
        elif math.isfinite(value):
            low, high = (min(max(metrics[of] + sign * 1.96 * value, 0.0), 1.0) for sign in (-1, 1))
            shown.append((f"{of}, 95 % interval", f"{low:.3f} to {high:.3f}"))
    return tuple(shown)


def target_facts(history: Sequence[Row], target: float | None) -> tuple[tuple[str, Cell], ...]:
    """When the first metric reached the target, and what that had cost."""
    metric = first_metric(history)
    if target is None or metric is None:
        return ()
    row = reached(history, metric, target)
    if row is None:
        return ((f"rounds to {metric} {target:g}", "not reached"),)
    costs = {"bytes_up": "bytes up per party until then", "bytes_down": "bytes down", "seconds": "seconds of work"}
    return ((f"rounds to {metric} {target:g}", row["round"]), *((words, row.get(cost)) for cost, words in costs.items()))


def metric_curves(history: Sequence[Row], compared: Baselines, target: float | None = None) -> tuple[Curve, ...]:
    """One figure for each metric that was measured in three rounds or more; the first has a line at the target."""
    names = list(dict.fromkeys(key for row in history for key in metrics_of(row)))
    curves = []
    for name in names:
        points = [(row["round"], row[name]) for row in history if name in row]
        if len(points) < LEAST_POINTS:
            continue
        series = [Series("federated", *_columns(points))]
        if name.endswith(("accuracy", "mean squared error")) and compared.on.startswith("the "):  # the same records
            levels = {"centralised": compared.centralised, "local only, median": _median(list(compared.alone.values()))}
            series += [Series(label, (1.0,), (value,), "reference") for label, value in levels.items() if value is not None]
        line, note = (target, f"The line is the target, {target:g}.") if target is not None and name == names[0] else (None, "")
        curves.append(Curve(name[:1].upper() + name[1:], "round", name, tuple(series), line, note))
    return tuple(curves)


def epsilon_curve(built: Built) -> tuple[Curve, ...]:
    """Epsilon spent after each question, where all releases are private."""
    ledger, budget = built.run.ledger, built.run.ledger.limit
    charges = ledger.charges(budget.unit) if isinstance(budget, Budget) else []
    if not isinstance(budget, Budget) or len(charges) < LEAST_POINTS or not math.isfinite(budget.spent(charges)):
        return ()
    counts = sorted({round(x) for x in np.linspace(1, len(charges), min(EPSILON_POINTS, len(charges)))})
    spent = tuple((float(k), budget.spent(charges[:k])) for k in counts)
    note = f"The line is the budget: a question that would cross it is refused before it is asked. Delta {budget.delta:g}."
    return (Curve("Epsilon spent", "releases", "epsilon", (Series("epsilon", *_columns(spent)),), budget.epsilon, note),)


def comparison_of(built: Built, compared: Baselines, *, useful: bool = True) -> Comparison | None:
    """Federated beside centralised and local-only; no words on what federation costs where the model is of no use."""
    if compared.federated is None:
        return None
    metric, more = built.listing.metric(built.schema)
    rows = [("federated", compared.federated, "this run")]
    if compared.centralised is not None:
        how = "the program's own noise" if compared.noisy else "no protection"
        rows.append(("centralised", compared.centralised, f"same program, all records in one place, {how}"))
    alone = list(compared.alone.values())
    median = _median(alone)
    ranges: tuple[tuple[str, float, float], ...] = ()
    if median is not None:
        planned = divides_budget(built.settings) and built.settings["epsilon"] is not None  # which baselines leave out
        rows.append(
            ("local only", median, f"median of {len(alone)} parties, each with its own records{' and no noise' * planned}")
        )
        ranges = (("local only", min(alone), max(alone)),)
    sentence = f"Measured on {compared.on}."
    if compared.failed:
        sentence += f" {compared.failed} of {compared.tried} parties that were tried cannot fit this model alone."
    return Comparison(metric, more, tuple(rows), sentence, ranges, useful)


def party_grid(built: Built, compared: Baselines) -> Grid | None:
    """The federated model at each party, beside the party's own."""
    if not compared.at_parties:
        return None
    metric = built.listing.metric(built.schema)[0]
    rows = [(name, records, value, compared.alone.get(name)) for name, (records, value) in compared.at_parties.items()]
    where = f"The own model is measured on {compared.on}, so the two columns do not compare."
    note = f"{compared.tried} of {built.federation.size} parties, evenly spread. {where}"
    columns = ("party", "records", f"{metric} of the federated model, there", f"{metric} of the own model, on all")
    return Grid("At the parties", columns, tuple(rows), note)


def what_left(entries: Sequence[Entry], shows: str) -> Grid:
    """What left each party: one row for each kind of question; compression has a column where there is any.

    `shows` is what the server sees of it.
    """
    kinds: dict[Any, list[Entry]] = {}
    for entry in entries:
        bound, noise = entry.protection
        alike = bound if noise != "none" else ""  # without noise a bound is a range, which may follow the model
        kinds.setdefault((entry.verb, entry.query, entry.compression, alike, noise, asked_of(entry)), []).append(entry)
    compressed = any(entry.compression != "none" for entry in entries)
    rows = []
    for (verb, query, compression, _, noise, whom), asked in kinds.items():
        name = short_name(query) + ("" if verb == "sum" else f" ({verb})")
        in_all, up, down = (total([getattr(entry, what) for entry in asked]) for what in ("numbers", "bytes_up", "bytes_down"))
        each = tuple(None if value is None else round(value / len(asked)) for value in (up, down))
        words = (compression,) if compressed else ()
        bounds = list(dict.fromkeys(entry.protection[0] for entry in asked))
        bound = bounds[0] if len(bounds) == 1 else f"{len(bounds)} ranges, in the ledger"
        rows.append((name, len(asked), in_all, *each, *words, bound, noise, whom))
    aggregations = ", ".join(sorted({entry.aggregation for entry in entries})) or "none"
    note = (
        "Numbers that a party sends if it is asked every time; nothing else leaves it. Bytes are those of one time, with 32 "
        f"bits to a number that is neither compressed nor masked. Aggregation: {aggregations}: {shows}."
    )
    columns = ("query", "times", "numbers in all", "bytes up", "bytes down", *(("compression",) if compressed else ()))
    return Grid("What left each party", (*columns, "bound", "noise", "asked of"), tuple(rows), note)


def asked_of(entry: Entry) -> str:
    """Who was asked: all parties, a drawn cohort, or all but those who are left out by name and so pay nothing."""
    out = [name for name, event in entry.by_party if event.kind == "none"]
    if entry.sampling.kind != "all" or not out or entry.event.kind == "none":
        return str(entry.sampling)
    return f"all but {', '.join(out[:MOST_NAMED])}" + (f" and {len(out) - MOST_NAMED:,} more" if len(out) > MOST_NAMED else "")


MOST_NAMED = 3
"""Parties that are left out whose names a table tells."""


def traffic(entries: Sequence[Entry]) -> tuple[tuple[str, Cell], ...]:
    """Bytes that went up from, and down to, all parties together; of a Poisson cohort, what is expected."""
    up = total([None if entry.bytes_up is None else entry.parties * entry.bytes_up for entry in entries])
    down = sum(entry.parties * entry.bytes_down for entry in entries)
    return ("bytes up in all", None if up is None else round(up)), ("bytes down in all", round(down))


def total(values: Sequence[float | None]) -> float | None:
    """The sum, or None where a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def short_name(query: str) -> str:
    """`hedgerow.stats.glm:score` as `stats.score`; other names as they are."""
    module, _, function = query.partition(":")
    parts = module.split(".")
    return f"{parts[1]}.{function}" if parts[0] == "hedgerow" and len(parts) > 1 else query


def heat_of(heat: PartitionHeat, sentence: str) -> Heat:
    """The partition as parties by labels."""
    counts = tuple(tuple(float(count) for count in row) for row in heat.counts)
    return Heat("How records are spread", tuple(heat.rows), tuple(heat.columns), counts, sentence)


def provenance(study: Study, command: str) -> tuple[tuple[str, str], ...]:
    """Versions, seeds and the command."""
    packages = [(name, version(name)) for name in ("hedgerow", "numpy", "scipy", "dp-accounting")]
    seed = study.simulation_seed
    named = study.data.dictionary_named
    return (
        ("command", command or "hedgerow.study.run"),
        ("study digest", study.digest),
        *((("dictionary", f"{named[0]}, digest {named[1][:16]}"),) if named else ()),
        ("seed", "operating system" if seed is None else str(seed)),
        ("python", f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}"),
        *packages,
    )


def _columns(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(float(x) for x, _ in points), tuple(float(y) for _, y in points)


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None
