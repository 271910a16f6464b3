"""From the runs of a comparison to its report: ours beside the published, a matrix, curves, costs, and what is not said."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hedgerow.errors import MissingData
from hedgerow.report import Curve, Grid, Heat, Report, Series
from hedgerow.report.model import Cell as Value
from hedgerow.report.numerals import MINUS, show
from hedgerow.study.explain import provenance
from hedgerow.study.judged import FACT
from hedgerow.study.publication_kinds import KINDS
from hedgerow.study.rounds import points
from hedgerow.study.study import Study

from .axis import against_axis, noise_table, short_table
from .collected import collected, collected_curves
from .standings import AT_PARTIES, BY_SIMULATION, Standing, Standings, chosen_on

LINES = 5
"""At most so many lines of a figure have a colour of their own: the best ones."""

TAKEN = {"best": "best over rounds", "last": "in the last round", "rounds": "rounds to the target"}
AT_END = "at the end of each run"


def report_of(
    study: Study, found: Standings, *, seconds: float, quick: bool, interrupted: bool, jobs: int, command: str
) -> Report:
    """Put a comparison into words, tables and figures."""
    section = found.section
    privacy, private = privacy_of(found.runs)
    tuned, others = tuned_on(found), [found.by(measure) for measure in section.also]
    return Report(
        title=study.title or study.name,
        study=study.name,
        description=_said_first(study, found),
        nothing=no_use(found),
        privacy=privacy,
        privacy_ok=private,
        privacy_weak=any(run.said.weak for run in found.runs if run.said is not None),
        exposed=" ".join((*exposed_of(found.runs), *tuned)),
        published=published_of(found),
        facts=(
            ("runs", len(found.runs)),
            ("finished", sum(run.report is not None for run in found.runs)),
            ("measure", f"{found.measure}, {AT_END if found.at_end else TAKEN[section.take]}"),
            ("rounds in all", sum(run.history[-1]["round"] for run in found.runs if run.history)),
            ("seconds of work in all", round(sum(run.seconds or 0.0 for run in found.runs), 1)),
            ("seconds here", round(seconds, 1)),
            ("runs side by side", jobs),
        ),
        metrics=headline(found),
        curves=(
            *(against_axis(found) or curves(found)),
            *(c for one in others for c in against_axis(one, found)),
            *collected_curves(found),
        ),
        heat=matrix(found),
        tables=(
            table(found),
            *map(table, others),
            *collected(found),
            *short_table(found),
            *noise_table(found),
            *target_table(found),
            run_table(found),
        ),
        notes=notes(found),
        warnings=warnings_of(found, study, quick=quick, interrupted=interrupted),
        provenance=provenance(study, command),
    )


def no_use(found: Standings) -> str:
    """That all runs learned nothing, where that is so."""
    reports = [run.report for run in found.runs if run.report is not None]
    return f"None of the {len(reports)} runs learned anything." if reports and all(one.nothing for one in reports) else ""


def table(found: Standings) -> Grid:
    """Rows by columns: ours / published (difference), or ours alone."""
    section = found.section
    rows: list[tuple[Value, ...]] = []
    for row in section.rows:
        runs = [found.at(row.name, column.name) for column in section.columns]
        rows.append((row.name, *(beside(run) if section.published else run.shown for run in runs)))
    beside_published = f"Ours / published (difference). Published: {section.source}." if section.published else ""
    over = f"Means of {found.seeds} seeds, with 95 % intervals of the mean." if found.seeds > 1 else ""
    kept = any(run.cell.study.evaluation.keep == "best" for run in found.runs) and section.take == "last" and not found.at_end
    best_round = "Of runs that keep the model of their best round, the value there." if kept else ""
    note = " ".join(filter(None, (beside_published, over, best_round, *tuned_on(found))))
    taken = AT_END if found.at_end else TAKEN[section.take]
    title = f"{found.measure[:1].upper()}{found.measure[1:]}, {taken}" + (
        f" {section.target:g}" if section.take == "rounds" else ""
    )
    return Grid(title, (section.axis, *(column.name for column in section.columns)), tuple(rows), note)


def beside(run: Standing) -> str:
    """`0.9712 / 0.97 (+0.0012)`."""
    if run.published is None:
        return show(run.value)
    if run.difference is None:
        return f"{show(run.value)} / {show(run.published)}"
    size = round(abs(run.difference), 4) if abs(run.difference) < 10 else abs(run.difference)
    sign = "+" if run.difference > 0 else MINUS if run.difference < 0 else "±"
    return f"{show(run.value)} / {show(run.published)} ({sign}{show(size)})"


def headline(found: Standings) -> tuple[tuple[str, Value], ...]:
    """What a reader looks for first: how far we are from the publication, from where to where runs go, or the best of them."""
    differences = [run.difference for run in found.runs if run.difference is not None]
    if differences:
        mean = sum(differences) / len(differences)
        return (("mean difference", round(mean, 5)), ("largest difference", round(max(differences, key=abs), 5)))
    if found.section.span and found.finished:
        values = [run.value for run in found.finished if run.value is not None]
        ends = dict.fromkeys(show(end) for end in (min(values), max(values)))
        return ((found.measure, " to ".join(ends)),)
    winner = found.winner if found.section.alike else None
    return () if winner is None else ((f"best {found.measure}", winner.value), ("in the run", winner.cell.name))


def curves(found: Standings) -> tuple[Curve, ...]:
    """The measure over rounds: one figure for each row with a line for each column; with one column, all in one figure."""
    rows, columns = found.section.rows, found.section.columns
    if len(columns) == 1:
        groups = [(columns[0].name, [(row.name, found.at(row.name, columns[0].name)) for row in rows])]
    else:
        groups = [(row.name, [(column.name, found.at(row.name, column.name)) for column in columns]) for row in rows]
    made = []
    for title, runs in groups:
        lines = [(name, run, points(run.history, found.measure)) for name, run in runs]
        lines = [(name, run, at) for name, run, at in lines if len(at) > 1]
        sign = -1 if found.more_is_better else 1
        ranked = sorted((run for _, run, _ in lines if run.value is not None), key=lambda run: sign * (run.value or 0.0))
        coloured = set(map(id, ranked[:LINES])) if len(lines) > LINES else {id(run) for _, run, _ in lines}
        series = tuple(
            Series(name, tuple(float(x) for x, _ in at), tuple(y for _, y in at), "main" if id(run) in coloured else "muted")
            for name, run, at in lines
        )
        note = f"The {LINES} best have colours; the others are grey." if len(lines) > LINES else ""
        if series:
            made.append(Curve(title, "round", found.measure, series, found.section.target, note))
    return tuple(made)


def matrix(found: Standings) -> Heat | None:
    """The table as a picture: the better, the stronger the colour; none where values are no numbers of one kind."""
    values = [run.value for run in found.places if run.value is not None]
    if len(values) < 2 or not found.section.alike:
        return None
    low, high = min(values), max(values)
    worst, top = (low, high) if found.more_is_better else (high, low)

    def shade(value: float | None) -> float:
        return 0.0 if value is None else 0.08 + 0.92 * (1.0 if top == worst else (value - worst) / (top - worst))

    rows, columns = (tuple(variant.name for variant in variants) for variants in (found.section.rows, found.section.columns))
    runs = [[found.at(row, column) for column in columns] for row in rows]
    counts = tuple(tuple(math.nan if run.value is None else run.value for run in line) for line in runs)
    note = f"The stronger the colour, the better: from {show(worst)} to {show(top)}; empty cells have no value."
    return Heat(
        "As a picture", rows, columns, counts, shades=tuple(tuple(shade(r.value) for r in line) for line in runs), note=note
    )


def target_table(found: Standings) -> tuple[Grid, ...]:
    """Rounds, bytes and seconds until each run reached the target."""
    target = found.section.target
    if target is None:
        return ()
    rows = [
        (run.cell.name, *((run.target or {}).get(key) for key in ("round", "bytes_up", "bytes_down", "seconds")))
        for run in found.runs
    ]
    columns = ("run", "rounds", "bytes up per party", "bytes down per party", "seconds of work")
    note = "A dash: not reached. Bytes are those of a party on average, all questions counted."
    return (Grid(f"Until {found.measure} reached {target:g}", columns, tuple(rows), note),)


def run_table(found: Standings) -> Grid:
    """One line for each run, with its folder, where its own page is."""
    rows: list[tuple[Value, ...]] = []
    judged = any(FACT in dict(run.report.facts) for run in found.runs if run.report)
    for run in found.runs:
        how = dict(run.report.facts).get("run") if run.report else ("failed" if run.problem else "not run yet")
        spent = run.said.epsilon if run.said is not None and run.said.private else None
        measured = (run.last,) if found.at_end else (run.best and run.best[1], run.best and run.best[0], run.last)
        refused = (dict(run.report.facts).get(FACT) if run.report else None,) if judged else ()
        rows.append((run.cell.name, *measured, how, *refused, spent, run.seconds, run.cell.folder))
    named = (found.measure,) if found.at_end else (f"best {found.measure}", "in round", "last")
    columns = ("run", *named, "ended", *([FACT] if judged else []), "epsilon", "seconds of work", "folder")
    return Grid("The runs", columns, tuple(rows), "Each run has its own page in its folder.")


def privacy_of(runs: Sequence[Standing]) -> tuple[str, bool]:
    """What all runs together guarantee: each asked the records anew, so that what they spend adds up."""
    said = [run.said for run in runs if run.said is not None]
    if not said:
        return "Nothing was released.", False
    n_open = sum(not one.private for one in said)
    if n_open:
        return f"No epsilon is claimed: in {n_open} of {len(said)} runs releases went out without noise.", False
    units = {one.unit for one in said}
    most = max(one.epsilon for one in said)
    if len(units) > 1:
        return (
            f"Epsilon at most {most:.4g} in each of {len(said)} runs; they protect different units, so no sum is claimed.",
            True,
        )
    epsilon, delta = sum(one.epsilon for one in said), sum(one.delta for one in said)
    from_seed = any("simulation seed" in one.sentence for one in said)
    seeded = "; noise from a simulation seed (not for deployment)" if from_seed else ""
    return (
        f"Epsilon {epsilon:.4g} at delta {delta:.3g} per {units.pop()} for all {len(said)} runs together, at most {most:.4g} "
        f"in each: every run asks the records anew, so what the runs spend adds up{seeded}. Each run's page says more.",
        True,
    )


def exposed_of(runs: Sequence[Standing]) -> tuple[str, ...]:
    """What the runs publish without protection: once where it is the same in all of them."""
    reports = [run.report for run in runs if run.report is not None]
    told = Counter(report.exposed for report in reports if report.exposed)
    alike = len(told) == 1 and told.total() == len(reports)
    return tuple(words if alike else f"In {n} of {len(reports)} runs: {words}" for words, n in told.items())


def published_of(found: Standings) -> Grid | None:
    """What the runs publish, with the number of runs that do, and the choice among them."""
    reports = [run.report for run in found.runs if run.report is not None and run.report.published is not None]
    grids = [report.published for report in reports if report.published is not None]
    if not grids:
        return None
    rows: list[tuple[Value, ...]] = [(*row, n) for row, n in Counter(row for grid in grids for row in grid.rows).items()]
    chosen = [where for run in found.finished if (where := chosen_on(found, run))]
    if chosen:
        kind, paid = KINDS["choice"], set(chosen) == {AT_PARTIES} and all(report.privacy_ok for report in reports)
        whose, how = " or ".join(dict.fromkeys(chosen)), "by the answers that the metric is computed from" if paid else kind.how
        rows.append((kind.what, whose, "charged" if paid else kind.status, None, how, len(chosen)))
    return replace(grids[0], columns=(*grids[0].columns, "runs"), rows=tuple(rows))


def tuned_on(found: Standings) -> tuple[str, ...]:
    """By which records settings, or rounds, of the table were chosen: where these are the records of the table, it says so."""
    section, said = found.section, []
    where = " or ".join(dict.fromkeys(chosen_on(found, run) for run in found.finished if chosen_on(found, run)))
    if section.choose and len(found.finished) > 1:
        said.append(
            f"Tuned on {where}: the best of {len(found.finished)} runs is the one with the best {found.measure} there, so that "
            "its value is too good."
        )
    elif section.take == "best" and where:
        said.append(
            f"The round of each value was chosen by {found.measure} on {where}, where it is shown: it is a little too good."
        )
    if section.tuned:
        said.append(f"How settings were chosen: {section.tuned}")
    elif section.published:
        said.append("On which records its settings were chosen, the comparison does not say.")
    return tuple(said)


def warnings_of(found: Standings, study: Study, *, quick: bool, interrupted: bool) -> tuple[str, ...]:
    """What a careful reader must know before taking numbers from the table."""
    section, said = found.section, []
    missing = sum(run.report is None and not run.problem for run in found.runs)
    if interrupted or missing:
        said.append(
            f"The comparison was interrupted: {missing} of {len(found.runs)} runs have not ended. Add --resume to continue."
        )
    said += [f"The run {run.cell.name!r} failed: {run.problem.splitlines()[0]}" for run in found.runs if run.problem]
    useless = [run.cell.name for run in found.runs if run.report is not None and run.report.nothing]
    if useless:
        names = ", ".join(useless[:6]) + ", ..." * (len(useless) > 6)
        said.append(f"{len(useless)} of {len(found.runs)} runs learned nothing or diverged, as their own pages say: {names}.")
    lacking = [run.problem.splitlines()[1:] for run in found.runs if run.problem.startswith(MissingData.__name__)]
    said += list(dict.fromkeys(" ".join(line.strip() for line in lines) for lines in lacking))  # where to get them, once
    if quick:
        changes = ", ".join(f"{key} = {value}" for key, value in section.quick.items())
        also = " The published numbers were made without these changes." if section.published else ""
        said.append(f"A quick run, with {changes}.{also}")
    if section.differs:
        said.append(f"What differs from the publication: {section.differs}")
    n = len(found.finished)
    if section.choose and n > 1:
        private = [run.said for run in found.runs if run.said is not None and run.said.private]
        if private:
            said.append(
                f"Each of {len(private)} trials spent a budget of its own, together epsilon "
                f"{sum(p.epsilon for p in private):.4g}. "
                "Choosing among them is not free: what is chosen costs the sum, not the epsilon of the best trial."
            )
        where = {"test": "one test table", "parties": "the same records of the parties", "none": "the same records"}
        theirs = {chosen_on(found, run) for run in found.finished} <= {AT_PARTIES, BY_SIMULATION}
        on = where["parties" if theirs else study.evaluation.on]
        said.append(
            f"The best of {n} trials on {on} looks better than it is, because it was chosen by what it "
            "is praised for. Measure the chosen one once more on records that no trial has seen."
        )
    return tuple(said)


def notes(found: Standings) -> tuple[str, ...]:
    """Where numbers come from."""
    section, said = found.section, []
    if section.published:
        said.append(f"Published numbers: {section.source}.")
    said.append("Runs have no baselines unless the study asks for them.")
    said += sorted({note for run in found.runs if run.report for note in run.report.notes[-1:]})
    return tuple(said)


def _said_first(study: Study, found: Standings) -> str:
    winner = found.winner
    if not found.section.choose or winner is None:
        return study.description or f"{len(found.section.rows)} by {len(found.section.columns)} runs of one study."
    return (
        f"{winner.cell.row} was best on {found.measure}, {TAKEN[found.section.take]}: {show(winner.value)}, among "
        f"{len(found.finished)} trials."
    )
