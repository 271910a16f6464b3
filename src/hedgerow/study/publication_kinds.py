"""Everything that a run publishes: what, of whose data, and whether it is charged. One list, kept here as data.

A run publishes more than its ledger has: a table that was held out, baselines, how records are spread. `KINDS` has an entry for
each kind; `REPORT`, `FACTS`, `OUTCOME`, `BASELINES` and `FILES` say which kinds a field of a report, a fact, a file of the run
folder holds. A test walks through them, so that something new is refused until it has its entry here.

`published` makes the list of one run from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.privacy.statement import Status

if TYPE_CHECKING:
    from .build import Built

HELD = "the parties' records"


@dataclass(frozen=True)
class Kind:
    """A kind of publication.

    Attributes
    ----------
    what : str
        In the table of a report; `{...}` is filled in for a run.
    whose : str
    status : {"charged", "exposed", "declared", "public"}
    how : str
        By what it is protected, or why it is not.
    there : callable
        `(built) -> bool`: whether a run of this study publishes it. Answers and claims are read from the ledger instead.
    short : str
        Of what is exposed: in the sentence beside epsilon.
    """

    what: str
    whose: str
    status: Status
    how: str
    there: Callable[[Built], bool] = lambda built: False
    short: str = ""


def simulated(built: Built) -> bool:
    return built.simulated


def local(built: Built) -> bool:
    """Whether the records are here, and not at stations."""
    return len(built.table) > 0


def baselines(built: Built) -> bool:
    return built.simulated and built.study.baselines and built.listing.score is not None


def leaked(built: Built) -> bool:
    return built.simulated and built.study.evaluation.membership


def measured(built: Built) -> bool:
    """Whether a table of the server is used."""
    by_round = built.study.evaluation.on == "test" and built.listing.watch is not None
    return built.test is not None and (by_round or baselines(built) or leaked(built))


def held(built: Built) -> bool:
    return measured(built) and built.study.evaluation.holdout > 0


def own_table(built: Built) -> bool:
    return measured(built) and not built.study.evaluation.holdout


def chosen(built: Built) -> bool:
    """Whether a metric decides when the run ends, or which of its rounds is the result."""
    evaluation = built.study.evaluation
    return evaluation.patience is not None or evaluation.stop or evaluation.keep == "best"


def inferred(built: Built) -> bool:
    """Whether kinds or levels of columns were read off a file, since the study does not declare them."""
    told = built.study.data.declared_columns()
    known = {name for name, one in told.items() if one.told_kind and (one.levels or one.told_kind != "category")}
    return (
        local(built)
        and built.study.data.path is not None
        and not known | set(built.study.data.derivations()) >= set(built.schema.names)
    )


KINDS: dict[str, Kind] = {
    "answers": Kind("{n} answers to questions", HELD, "charged", "in the ledger: {noise}"),
    "open answers": Kind(
        "{n} answers to questions without noise", HELD, "exposed", "in the ledger, which claims no epsilon for them"
    ),
    "results": Kind(
        "the model, tables, figures and metrics that are computed from answers",
        HELD,
        "charged",
        "by the answers: what is computed from a release costs nothing more",
    ),
    "held-out table": Kind(
        "metrics on {share:.3g} % of the records, {tested:,} of them, which were used as a test table",
        "people whose records were taken out of the parties' data",
        "exposed",
        "no noise is added and nothing is charged",
        held,
    ),
    "test table": Kind(
        "metrics on the server's test table of {tested:,} records",
        "people who are in no party's data",
        "exposed",
        "no noise is added and nothing is charged",
        own_table,
    ),
    "selection": Kind(
        "when the run ends, which a metric decides",
        "those on whose records the metric is measured",
        "exposed",
        "what is decided by a metric tells of the records behind it",
        lambda built: chosen(built) and measured(built),
        "when the run ended",
    ),
    "charged selection": Kind(
        "when the run ends, which a metric decides",
        HELD,
        "charged",
        "by the answers that the metric is computed from",
        lambda built: chosen(built) and not measured(built),
    ),
    "baselines": Kind(
        "models fitted to all records in one place, and by parties alone",
        HELD,
        "exposed",
        "only a simulation can fit them; nothing is charged",
        baselines,
        "baselines",
    ),
    "membership": Kind(
        "how well the model's losses tell the parties' records from the server's",
        HELD,
        "exposed",
        "only a simulation can compute it; nothing is charged",
        leaked,
        "how well the model tells who was a member",
    ),
    "party metrics": Kind(
        "metrics and numbers of records of single parties",
        HELD,
        "exposed",
        "only a simulation can compute them",
        baselines,
        "metrics at single parties",
    ),
    "exact results": Kind(
        "results beside the exact ones of the same records",
        HELD,
        "exposed",
        "only a simulation can compute them",
        lambda built: built.simulated and built.listing.with_records,
        "exact results beside the released ones",
    ),
    "audit": Kind(
        "lights and scores of an audit, which trains once more with canaries",
        HELD,
        "exposed",
        "its runs have a ledger of their own, which is not charged here",
        lambda built: built.study.audit is not None,
        "the audit",
    ),
    "attack": Kind(
        "which simulated parties lie, how, and what they know",
        "the study",
        "declared",
        "as the study says; of real parties nobody knows",
        lambda built: built.study.attack is not None,
    ),
    "clean twin": Kind(
        "metrics of the same study with nobody acting",
        HELD,
        "exposed",
        "only a simulation can train it; nothing is charged",
        lambda built: built.study.attack is not None and built.simulated and built.study.baselines,
        "the clean twin of the attack",
    ),
    "partition": Kind(
        "how records are spread over parties and labels",
        HELD,
        "exposed",
        "exact counts, which only a simulation has",
        simulated,
        "how records are spread",
    ),
    "size": Kind("how many records there are", HELD, "exposed", "an exact count", simulated, "their number"),
    "incomplete": Kind(
        "how many records were dropped because values are missing",
        HELD,
        "exposed",
        "an exact count",
        lambda built: local(built) and "were dropped" in built.table.source,
        "how many were dropped",
    ),
    "warnings": Kind(
        "warnings about records, such as parties with one class only",
        HELD,
        "exposed",
        "read off the records",
        simulated,
        "warnings",
    ),
    "fingerprint": Kind(
        "a hash of study and records, in the run folder, by which a run is resumed",
        HELD,
        "exposed",
        "who guesses all records can confirm the guess",
        local,
        "a hash of them",
    ),
    "seed": Kind(
        "the seed of cohorts and noise",
        "the study",
        "exposed",
        "who knows it can take the noise off again: it protects nobody",
        simulated,
    ),
    "times": Kind("seconds of work", HELD, "exposed", "how long a computation takes may depend on records", lambda built: True),
    "states": Kind(
        "what parties keep between rounds, in the run folder",
        HELD,
        "exposed",
        "a simulation keeps all parties' states in one place",
        lambda built: local(built) and built.study.engine.states == "disk",
        "parties' states on disk",
    ),
    "settings": Kind(
        "settings of program, clip, noise and budget",
        "the study's author",
        "declared",
        "whether they were tried out on these records before, nothing here can know",
        lambda built: True,
    ),
    "declared columns": Kind(
        "kinds, levels and ranges of columns",
        "{source}",
        "declared",
        "as public; bounds are computed from them",
        lambda built: not inferred(built),
    ),
    "inferred columns": Kind(
        "kinds and levels of columns, read off the file; ranges are the study's",
        HELD,
        "exposed",
        "a level that one record alone has is revealed",
        inferred,
        "levels of columns",
    ),
    "plan": Kind(
        "questions, numbers of parties, sizes of messages, epsilon and ledger",
        "the study",
        "public",
        "follow from the study and from what was released",
        lambda built: True,
    ),
    "answered": Kind(
        "which parties answered, and whose rows were longer than their bound",
        "the parties",
        "public",
        "taking part is no secret but in a Poisson cohort",
        lambda built: True,
    ),
    "claims": Kind(
        "what the program's paper says of privacy, claimed, not proved",
        HELD,
        "exposed",
        "{claim}",
    ),
    "choice": Kind(
        "which run of a comparison, or which of its rounds, is shown as the best",
        "those on whose records the metric is measured",
        "exposed",
        "a choice by a metric tells of the records behind it",
    ),
    "words": Kind("title, description, versions and command", "the study's author", "public", "words"),
}
"""Every kind of publication that there is."""

REPORT: dict[str, tuple[str, ...]] = {
    "title": ("words",),
    "study": ("words",),
    "description": ("words", "choice", "results"),
    "nothing": ("results", "held-out table", "test table", "baselines"),
    "privacy": ("plan",),
    "privacy_ok": ("plan",),
    "privacy_weak": ("plan",),
    "tables_first": ("plan",),
    "published": ("plan",),
    "exposed": ("plan",),
    "facts": (),  # `FACTS` has them one by one
    "metrics": ("results", "held-out table", "test table", "membership"),
    "curves": ("results", "held-out table", "test table", "baselines", "plan"),
    "dots": ("results", "exact results"),
    "bars": ("results", "exact results"),
    "heats": ("results", "exact results"),
    "pictures": ("results", "exact results"),
    "forests": ("results", "exact results"),
    "flows": ("results", "exact results", "incomplete", "size"),
    "headlines": ("results", "incomplete", "size"),
    "witnesses": ("plan",),
    "heat": ("partition",),
    "saw": ("plan",),
    "traffic": ("plan", "size", "times"),
    "comparison": ("baselines",),
    "audit": ("audit",),
    "parties": ("party metrics",),
    "left": ("plan",),
    "tables": ("results", "exact results", "attack", "clean twin", "answered", "claims", "membership"),
    "text": ("results",),
    "notes": ("answered", "words", "selection", "charged selection"),
    "warnings": ("warnings",),
    "provenance": ("words", "seed", "settings", "declared columns", "inferred columns", "incomplete"),
}
"""Fields of a report, and what they publish."""

FACTS: dict[str, str] = {
    "parties": "plan",
    "parties that lie": "attack",
    "rows beyond their bound": "answered",
    "rows refused": "answered",
    "stations": "plan",
    "records": "size",
    "program": "settings",
    "run": "selection",
    "questions asked": "plan",
    "head of the ledger": "plan",
    "bytes up in all": "plan",
    "bytes down in all": "plan",
    "engine": "words",
    "seconds": "times",
    "rounds to ": "selection",
    "bytes up per party until then": "selection",
    "bytes down": "selection",
    "seconds of work": "times",
    "people": "size",
    "columns": "plan",
    "alignment": "settings",
    "rounds of letters": "plan",
    "bytes of letters": "size",
    "processor seconds": "times",
}
"""Facts of a report by the beginnings of their names."""

_SHOWN = "metrics tables text arrays coefficients curves dots bars heats pictures forests flows headlines counted grids notes"
OUTCOME: dict[str, str] = dict.fromkeys(_SHOWN.split(), "results")
"""Fields of what a program shows (`hedgerow.report.Outcome`)."""

BASELINES: dict[str, str] = {
    "federated": "baselines",
    "centralised": "baselines",
    "alone": "baselines",
    "failed": "baselines",
    "tried": "baselines",
    "at_parties": "party metrics",
    "on": "plan",
    "noisy": "plan",
}
"""Fields of `hedgerow.study.baselines.Baselines`."""

FILES: dict[str, str] = {
    "report.html": "plan",  # the fields of the report
    "result.json": "plan",
    "ledger.jsonl": "plan",
    "study.toml": "settings",
    "schema.json": "declared columns",
    "rounds.jsonl": "results",
    "model.safetensors": "results",
    "coefficients.csv": "results",
    "checkpoint.safetensors": "results",
    "digest": "fingerprint",
    "run": "plan",
    "states": "states",
}
"""Files of a run folder."""
