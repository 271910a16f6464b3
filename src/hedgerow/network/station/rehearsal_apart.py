"""The rehearsal of a study over columns that lie apart: the whole of it, with its protocols, between made-up parties.

Every station is told the declared columns of all, and runs the whole program in a process of its own, from the alignment on,
with made-up people (`hedgerow.study.apart.overheard`). What is heard are the kinds of questions that the study may ask. How
many people are common is no part of a kind: that is known after the alignment alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.engine import Outbox
from hedgerow.data import Schema
from hedgerow.errors import HedgerowWarning, MessageRefused
from hedgerow.wire.question import Received

from .apart import admit_asked
from .counts import most_rounds
from .policy import admit_cohort, admit_protection
from .signatures_apart import announced_apart, kind_apart
from .wear import ANY
from .wording import plain

if TYPE_CHECKING:
    from hedgerow.study.apart.overheard import HeardApart
    from hedgerow.study.study import Study

    from .config import StationConfig
    from .signatures import Announced
    from .submissions import Submission


def rehearsed_apart(
    config: StationConfig,
    submission: Submission,
    study: Study,
    schemas: dict[str, Schema],
    n_people: int,
    roster: Collection[str] | None,
) -> tuple[Submission, list[Outbox]]:
    """Rehearse a study; return its submission with everything that it will ask, in words, and the questions.

    Parameters
    ----------
    schemas : mapping from station to Schema
        Of the columns that each is asked about.
    n_people : int
        People here.
    roster : collection of str, optional
        Stations that are trusted to take part; letters to others could not be sealed.

    Raises
    ------
    HedgerowError
        The guard's reason, or the program's.
    """
    if roster is not None and (strangers := sorted(set(schemas) - set(roster))):
        raise MessageRefused(f"the study counts {', '.join(strangers[:3])}, and the roster here names no such station.")
    from hedgerow.study.apart.overheard import overheard

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        heard, built = overheard(study, schemas, config.guard.limits.rehearsed_rounds)
    guard, others = config.guard, [name for name in schemas if name != config.name]
    questions = []
    for outbox, protocol, _ in heard.asked:
        if config.name not in outbox.ids:
            continue
        asked = Received(outbox, protocol)
        admit_asked(guard, asked, on=str(config.data.ids), here=n_people, others=others)
        admit_protection(guard.require, outbox, hidden=protocol is not None)
        admit_cohort(guard, outbox, len(outbox.ids), None)
        questions.append(replace(outbox if protocol is None else protocol.foreseen(outbox), step=None))
    noisy = any(outbox.release.mechanism is not None for outbox, _, _ in heard.asked)
    openings = built.settings.get("openings")
    kinds = announced_apart(heard.asked, heard.ends, heard.whole, most_rounds(built, noisy), int(openings or 0))
    said = submission_words(study, config.name, heard)
    made = replace(
        submission,
        ready=True,
        title=plain(study.title or study.name),
        program=study.program.name,
        n_stations=len(schemas),
        summary=plain(said),
        rows=tuple({key: plain(value) for key, value in row.items()} for row in rows_apart(study, config.name, heard, kinds)),
        columns=schemas[config.name].names,
        announced=kinds,
    )
    return made, questions


def submission_words(study: Study, mine: str, heard: HeardApart) -> str:
    """Who will learn what, in a few sentences."""
    from hedgerow.study.apart.foreseen import will_learn

    others = " and ".join(name for name in will_learn(study) if name not in (mine, "hub", "world"))
    assert study.alignment is not None
    return (
        f"Matches the people here with those of {others} by {study.alignment.on!r} ({study.alignment.by}, at least "
        f"{study.alignment.least} in common); on made-up people the program {heard.ended}. "
        f"Here will be learned: {' '.join(will_learn(study)[mine])}"
    )


def rows_apart(study: Study, mine: str, heard: HeardApart, kinds: Announced) -> list[dict[str, str]]:
    """One row for each run of questions of one kind; the first says who will learn what."""
    from hedgerow.study.apart.foreseen import will_learn

    rows: list[dict[str, str]] = []
    last, begins = None, 0
    for number, (outbox, protocol, _) in enumerate(heard.asked, 1):
        kind = kind_apart(outbox, protocol)
        if kind == last:
            rows[-1]["questions"] = f"questions {begins} to {number}"
            continue
        last, begins = kind, number
        most = kinds.most.get(kind, ANY)
        row = {"questions": f"question {number}", "asks": f"{outbox.question.verb} of {outbox.question.name}"}
        row["between"] = ", ".join(outbox.ids)
        row["leaves"] = "nothing" if protocol is None else f"{protocol.name}: {protocol.shows}"
        row["mechanism"] = str(outbox.release.mechanism or "none")
        row["may be asked"] = "any number of times" if most == ANY else f"{most} times at most"
        rows.append(row)
    for role, said in will_learn(study).items():
        whose = f"{role}, which is here, will learn" if role == mine else f"{role} will learn"
        if rows and said:
            rows[0][whose] = " ".join(said)
    return rows
