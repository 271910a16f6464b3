"""From the runs of a matrix to its page: accuracy and success by act and rule, what each rule costs, and what follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hedgerow.core.bound import describe
from hedgerow.report import Grid, Heat, Report
from hedgerow.study.attack import AttackSection
from hedgerow.study.attacked import act_in_words
from hedgerow.study.explain import provenance
from hedgerow.study.protection import ProtectionSection
from hedgerow.study.study import Study

from .matrix_measured import ACCURACY, GAINED, LOST, SUCCESS, MatrixMeasured, holds, price, spread
from .matrix_runs import REFUSED, MatrixRun
from .matrix_words import sentences

SUCCESS_NOTE = (
    "Of the target, whatever the act: where nobody lies it is the clean twin's rate. A model that an act destroyed says one "
    "class of everything, and has 0 or 100."
)


def matrix_report(
    study: Study, runs: Sequence[MatrixRun], wanted: int, *, seconds: float, jobs: int, interrupted: bool, command: str
) -> Report:
    """The page of a matrix."""
    found, section = MatrixMeasured.of(study, runs), study.matrix
    assert section is not None
    said = sentences(found)
    worst, success = worst_of(found), SUCCESS if found.metric(SUCCESS) else ""
    metrics: list[tuple[str, Any]] = []
    if worst:
        best = max(worst, key=lambda rule: worst[rule])
        metrics = [("rule whose least accuracy is the highest", best), ("that accuracy, percent", round(100 * worst[best], 1))]
    failed = [run for run in runs if run.problem]
    warnings = list[str]()
    if failed:
        where = ", ".join(dict.fromkeys(f"{run.act} with {run.rule}" for run in failed))
        warnings.append(
            f"{len(failed)} of {len(runs)} runs stopped before their last round, and their last model is measured: {where}. "
            f"The first said: {failed[0].problem}"
        )
    if interrupted or len(runs) < wanted:
        warnings.append(f"{wanted - len(runs)} of {wanted} runs have not been made. Add --resume to make them.")
    protected = study.protection.mechanism is not None
    told = (
        "A matrix keeps no ledger: the same study with the keys of one cell tells its epsilon."
        if protected
        else "No epsilon is claimed: these are simulations, and nothing is noised."
    )
    return Report(
        title=study.title or study.name,
        study=study.name,
        description=study.description or f"{len(found.acts)} acts by {len(found.rules)} rules, {section.seeds} seeds.",
        privacy=told,
        privacy_ok=False,
        facts=(
            ("runs", len(runs)),
            ("seeds", section.seeds),
            ("measured over the last rounds", section.last),
            ("seconds of work in all", round(sum(run.seconds for run in runs), 1)),
            ("seconds here", round(seconds, 1)),
            ("runs side by side", jobs),
        ),
        metrics=tuple(metrics),
        heats=(picture(found, said),),
        tables=(
            *(grid for partition in found.partitions for grid in tables_of(found, partition, success)),
            *price_table(found),
            verdicts(found),
            *refused_table(found),
            acts_table(study),
        ),
        notes=(
            f"A value is the median over {section.seeds} seeds of the mean over the last {section.last} rounds; in brackets "
            "the least and the most over seeds."
            if section.seeds > 1
            else f"A value is the mean over the last {section.last} rounds.",
            "A row in which nobody lies is the clean twin of the others: the same parties, records and randomness.",
            *_of_success(found),
            *_of_channels(study),
        ),
        warnings=tuple(warnings),
        provenance=provenance(study, command),
    )


def _of_success(found: MatrixMeasured) -> tuple[str, ...]:
    if found.metric(SUCCESS) is None:
        return ()
    return (
        "Success is the share of the server's records of other classes that are given the target when they carry the trigger; "
        "records of the target's own class are left out.",
    )


def _of_channels(study: Study) -> tuple[str, ...]:
    """What columns with a channel of their own go through, and that proofs were not carried out where they were not."""
    assert study.matrix is not None
    said = []
    for rule in study.matrix.rules_named:
        if rule.protection is None:
            continue
        channel = ProtectionSection.model_validate(rule.protection)
        slots, aggregation = channel.slots(), channel.aggregation
        parts = [f"a clip of {describe(slots['clip'])}" if slots["clip"] is not None else "", str(slots["aggregation"] or "")]
        words = (
            f"{rule.head}: {rule.name} of rows that go through {' and '.join(filter(None, parts)) or 'a channel of its own'}."
        )
        if aggregation is not None and aggregation.verified and aggregation.mode == "simulated":
            words += (
                " Proofs were not carried out: rows beyond the bound left the total in the open, as proofs make them. One cell "
                'of its own (hedgerow.compare.matrix_cells) runs them with mode = "real".'
            )
        said.append(words)
    return tuple(said)


def _title(words: str, partition: str) -> str:
    return f"{words}: {partition}" if partition else words


def tables_of(found: MatrixMeasured, partition: str, success: str) -> list[Grid]:
    """Accuracy, and success where one was measured, of one partition; in percent."""
    made = []
    for end, words, note in (
        (
            ACCURACY,
            "Accuracy, percent",
            "The median over seeds, and its range. The first row in which nobody lies is the clean twin.",
        ),
        (success, "Success of the backdoor, percent", SUCCESS_NOTE),
    ):
        if not end or found.metric(end) is None:
            continue
        rows = tuple(
            (act, *(None if (at := found.at(end, partition, act, rule)) is None else str(at) for rule in found.rules))
            for act in found.acts
        )
        made.append(Grid(_title(words, partition), ("act", *found.rules), rows, note))
    return made


def price_table(found: MatrixMeasured) -> tuple[Grid, ...]:
    """What each rule loses beside the mean while nobody lies."""
    if found.plain is None:
        return ()
    rows = tuple(
        (rule, *(None if (at := price(found, partition, rule)) is None else str(at) for partition in found.partitions))
        for rule in found.rules
        if rule != found.plain
    )
    heads = tuple(partition or "price" for partition in found.partitions)
    note = "Points of accuracy below the mean with the same seed, where nobody lies; below zero where the rule is better."
    return (Grid("What a rule costs while nobody lies", ("rule", *heads), rows, note),)


def verdicts(found: MatrixMeasured) -> Grid:
    """Which rules hold against which act."""
    rows = []
    for partition in found.partitions:
        for act in (act for act in found.acts if act != found.clean):
            how = {rule: holds(found, partition, act, rule) for rule in found.rules}
            stand = ", ".join(rule for rule, held in how.items() if held) or "none"
            fall = ", ".join(rule for rule, held in how.items() if held is False) or "none"
            rows.append((partition, act, stand, fall) if partition else (act, stand, fall))
    heads = ("partition", "act", "rules that hold", "rules that do not")
    note = (
        f"A rule holds if the act takes at most {100 * LOST:.0f} points of accuracy from it, and the backdoor succeeds at most "
        f"{100 * GAINED:.0f} points oftener than with nobody lying; medians over seeds."
    )
    return Grid("What holds against what", heads if found.partitions != ("",) else heads[1:], tuple(rows), note)


def refused_table(found: MatrixMeasured) -> tuple[Grid, ...]:
    """How many rows a round were refused, of rules whose rows are to be proved to be within their bound."""
    places = found.values.get(REFUSED, {})
    rules = tuple(rule for rule in found.rules if any(rule == one for _, _, one in places))
    if not rules:
        return ()
    rows = []
    for partition in found.partitions:
        for act in found.acts:
            at = [spread(list(places.get((partition, act, rule), {}).values())) for rule in rules]
            shown = tuple(None if one is None else f"{one.median:g}" for one in at)
            rows.append((partition, act, *shown) if partition else (act, *shown))
    heads = ("partition", "act", *rules) if found.partitions != ("",) else ("act", *rules)
    note = "The mean over rounds, the median over seeds. A row that is not proved to be within its bound is in no total."
    return (Grid("Rows refused in a round", heads, tuple(rows), note),)


def acts_table(study: Study) -> Grid:
    """What the acts are."""
    section = study.matrix
    base: dict[str, Any] = {} if study.attack is None else study.attack.model_dump(exclude_unset=True)
    assert section is not None
    rows = []
    for act in section.acts:
        one = AttackSection(**base | act.keys)
        rows.append((act.name, act_in_words(one)))
    return Grid("The acts", ("act", "what"), tuple(rows), "Of the section [attack] and what a row changes of it.")


def worst_of(found: MatrixMeasured) -> dict[str, float]:
    """The least median accuracy of each rule, over acts and partitions."""
    worst = {}
    for rule in found.rules:
        at = [found.at(ACCURACY, partition, act, rule) for partition in found.partitions for act in found.acts]
        if known := [one.median for one in at if one is not None]:
            worst[rule] = min(known)
    return worst


def picture(found: MatrixMeasured, said: Sequence[str]) -> Heat:
    """Acts by rules: accuracy in whole percent, and the success of a backdoor where it is beyond the clean twin's."""
    counts, shades, marks, rows = [], [], [], []
    for partition in found.partitions:
        for act in found.acts:
            at = [found.at(ACCURACY, partition, act, rule) for rule in found.rules]
            rows.append(act)
            counts.append(tuple(math.nan if one is None else float(round(100 * one.median)) for one in at))
            shades.append(tuple(0.0 if one is None else max(0.0, min(1.0, one.median)) ** 2 for one in at))
            marks.append(tuple(_mark(found, partition, act, rule) for rule in found.rules))
    note = "Accuracy in percent, the stronger the colour the higher; medians over seeds."
    if found.metric(SUCCESS):
        note += f" On the dark band: success of the backdoor in percent, where it is {100 * GAINED:.0f} or more."
    groups = tuple((partition, len(found.acts)) for partition in found.partitions if partition)
    return Heat(
        "Acts by rules",
        tuple(rows),
        found.rules,
        tuple(counts),
        " ".join(said),
        tuple(shades),
        note,
        tuple(marks),
        groups,
    )


def _mark(found: MatrixMeasured, partition: str, act: str, rule: str) -> str:
    at = found.at(SUCCESS, partition, act, rule) if act in found.aimed else None
    return "" if at is None or at.median < GAINED else f"{100 * at.median:.0f}"
