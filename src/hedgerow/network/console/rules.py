"""The guard in sentences, for its owner."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.network.station.config import GuardSection

WHO = {
    "nobody": "only noise that this station adds by itself counts",
    "parties": "noise that all parties add together counts",
    "aggregators": "noise that each of a few aggregators adds counts, while one of them is honest",
    "server": "the server's noise counts",
}
NOISE = {
    "server": "the server, aggregators or a party",
    "aggregators": "each aggregator, of whom one is honest, or the parties",
    "shares": "the parties, in shares, or each by itself",
    "party": "each party by itself",
}


def rules_of(guard: GuardSection) -> list[tuple[str, str]]:
    """Headings and sentences."""
    programs = "any" if guard.programs is None else ", ".join(f"{rule.name} ({rule.version})" for rule in guard.programs)
    need, limits = guard.require, guard.limits
    lies = ", also one that lies" * (need.adversary == "active")
    wants = [f"rows hidden: the coordinator{lies} sees totals alone"] * need.hidden_rows
    wants += ["rows verified: each is proved to be within its bound, or is in no total"] * need.verified
    if need.noise != "none":
        wants.append(f"noise by {NOISE[need.noise]}, with a multiplier of {need.noise_multiplier:g} or more")
    each = ((limits.questions_per_minute, "a minute"), (limits.questions_per_study, "a study"))
    rates = [f"{counted(n, 'question')} {per}" for n, per in each if n is not None]
    rates.append(f"{counted(limits.studies_at_once, 'study', 'studies')} at once")
    found = [
        (
            "Who approves",
            "a person, here or by the command hedgerow station approve" if guard.approval == "ask" else "the guard alone",
        ),
        ("Programs", programs or "none"),
        (
            "At least",
            f"{counted(guard.least_records, 'record')}, {counted(guard.least_cohort, 'party', 'parties')} in a question",
        ),
        ("Protection", "; ".join(wants) or "none is required"),
        ("Exact numbers", disclosed_words(guard)),
        ("Hours", f"{', '.join(guard.hours)} ({guard.timezone})" if guard.hours else "always"),
        ("Limits", ", ".join(rates)),
        ("Budget", "none" if guard.budget is None else f"{guard.budget.budget()}; {WHO[guard.budget.trust]}"),
        ("Budget of a study", "none" if guard.study_budget is None else str(guard.study_budget.budget())),
    ]
    if guard.randomness == "study":
        found.append(("Randomness", "the study's seed: noise can be foretold. For pilots and tests only"))
    return found


def disclosed_words(guard: GuardSection) -> str:
    """How many exact numbers may be asked."""
    said = "any number" if math.isinf(guard.disclosure) else f"{guard.disclosure:.2g} of a study for each value held"
    overall = guard.disclosure_overall
    if overall is None:
        return f"{said}, no limit over all studies"
    return f"{said}, {'any number' if math.isinf(overall) else format(overall, '.2g')} over all studies"


def noted(notes: Sequence[str]) -> list[tuple[str, str]]:
    """What the owner is told of a file that is not what is in force."""
    return [("The file", note) for note in notes]


def counted(n: int, one: str, several: str = "") -> str:
    """A number of things."""
    return f"{n:,} {one if n == 1 else several or one + 's'}"
