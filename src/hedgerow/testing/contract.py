"""The contract: what every program promises, tested on its own case.

    from hedgerow.testing import contract
    from my_lab.share import share

    test_contract = contract(share)

That is a test for pytest with one item for each promise. Without a program it is about all that the catalogue names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.declaration import Declaration, problems
from hedgerow.core.ledger import Entry
from hedgerow.core.question import function_of
from hedgerow.core.toml import to_toml
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import ProgramInvalid
from hedgerow.store import drive
from hedgerow.store.checkpoint import load_checkpoint, save_checkpoint
from hedgerow.study import PROGRAMS, load, rehearse_built, run_study
from hedgerow.study.build import build
from hedgerow.study.keys import keys_of
from hedgerow.wire.names import Names

from .neighbours import Heard, few, hearing, longest, padded
from .subject import Subject, assert_same, numbers, quiet
from .wired import Wired

SLACK = 1e-6
"""Rounding of a bound that is reached."""


def says_what_is_needed(subject: Subject, folder: Path) -> None:
    """The declaration is whole, the catalogue knows it, and every key has a type and a meaning."""
    one = subject.declaration
    assert list(problems(one)) == []
    assert one.name in PROGRAMS, f"no entry point of the group hedgerow.programs names {one.name!r}"
    assert PROGRAMS[one.name].path == one.path
    assert PROGRAMS.sentences()[one.name] == one.sentence
    undescribed = [key for key, field in keys_of(PROGRAMS[one.name]).model_fields.items() if not field.description]
    assert undescribed == []


def runs_from_a_study_file(subject: Subject, folder: Path) -> None:
    """A file runs it, with the metrics and the report that it declares, and refuses a key that it does not have."""
    one = subject.declaration
    measured = {"on": "parties"} if one.ask else {"on": "test", "holdout": 0.25} if one.watch else {"on": "none"}
    (folder / "study.toml").write_text(to_toml(subject.study(evaluation=measured).model_dump(mode="json")), encoding="utf-8")
    with quiet():
        found = run_study(
            load(folder / "study.toml"), folder / "run", make=lambda study: build(study, table=subject.case.table)
        )
    assert found.run.stopped == "finished"
    assert isinstance(found.run.state, one.state)
    assert (folder / "run" / "report.html").stat().st_size > 0
    if one.score is not None:
        built = subject.built()
        assert np.isfinite(one.score(built.settings, found.run.state, built.schema, subject.case.table))


def is_the_same_on_every_engine(subject: Subject, folder: Path) -> None:
    """The plain loop and the fast engine give the same numbers."""
    one, other = (numbers(subject.last(engine)) for engine in (Loop(), InProcess(threads=2)))
    assert one.keys() == other.keys()
    for key, value in one.items():
        scale = max(1.0, float(np.abs(value[np.isfinite(value)]).max(initial=0.0)))
        np.testing.assert_allclose(other[key], value, rtol=0, atol=subject.case.tolerance * scale, err_msg=key)


def resumes_from_every_state(subject: Subject, folder: Path) -> None:
    """From the checkpoint of any state it ends as if it had never stopped, to the last bit."""
    built = subject.built(InProcess(threads=1))
    files: list[Path] = []
    for state in subject.states(built):
        files.append(folder / f"{len(files)}.safetensors")
        save_checkpoint(files[-1], state, built.federation, "case")
    assert files, "it yields no state"
    for file in files:
        again = subject.built(InProcess(threads=1))
        again.run.ledger.entries = built.federation.ledger.entries
        start = load_checkpoint(file, subject.declaration.state, "case")
        with quiet():
            ended = drive(again.listing.program(again.settings), again.federation, start=start, progress=False)
        assert_same(ended.state, state)


def travels_as_bytes(subject: Subject, folder: Path) -> None:
    """Between a server and stations, which see nothing but bytes, it gives the same numbers to the last bit."""
    package = subject.declaration.function.__module__.partition(".")[0]
    names = Names(tuple(dict.fromkeys(("hedgerow", package))))
    assert_same(subject.last(Wired(names)), subject.last(InProcess(threads=1)))


def is_rehearsed_as_it_runs(subject: Subject, folder: Path) -> None:
    """A rehearsal, which asks nobody, announces every kind of question that a run asks; of a run of so many rounds, each one.

    Of iterations the answers decide how many rounds they take. A station refuses a question of a kind that was not announced.
    """
    with quiet():
        announced = rehearse_built(subject.built()).entries
    built = subject.built()
    for _ in subject.states(built):
        pass
    asked = built.federation.ledger.entries
    assert announced, "a rehearsal asks nothing"
    first, second = ([_kind(entry) for entry in entries] for entries in (announced, asked))
    assert set(second) <= set(first)
    assert first == second or "rounds" not in subject.case.settings
    assert (announced[0].numbers, announced[0].bound) == (asked[0].numbers, asked[0].bound)


def counts_no_record_of_weight_zero(subject: Subject, folder: Path) -> None:
    """A record of weight zero changes no sum that is declared to be additive: it is padding."""
    for one in _asked(subject):
        if getattr(function_of(one.local), "additive", False):
            length = padded(one, subject.case.table)
            assert length <= SLACK, f"{one.name}: a record of weight zero moves its sum by {length:.3g}"


def keeps_its_bounds(subject: Subject, folder: Path) -> None:
    """One record, or one party, moves no sum by more than the bound that is declared beside it."""
    for one in _asked(subject):
        for what, length in longest(one, subject.case.table) if one.bound is not None else ():
            assert length <= 1 + SLACK, f"{what} is exceeded: a neighbour moves the sum by {length:.6g} times as much"


PROMISES: dict[str, Callable[[Subject, Path], None]] = {
    promise.__name__: promise
    for promise in (
        says_what_is_needed,
        runs_from_a_study_file,
        is_the_same_on_every_engine,
        resumes_from_every_state,
        travels_as_bytes,
        is_rehearsed_as_it_runs,
        counts_no_record_of_weight_zero,
        keeps_its_bounds,
    )
}
"""What a program promises, by name."""

UNTIMED = (is_the_same_on_every_engine, resumes_from_every_state, travels_as_bytes)
"""Promises that a program which measures time cannot keep."""


def contract(*functions: Callable[..., Iterator[Any]]) -> Callable[..., None]:
    """Return a test of programs, for pytest to collect: `test_contract = contract(share)`.

    Parameters
    ----------
    *functions : callables
        Decorated by `hedgerow.program`; every program of the catalogue where none is given.
    """
    import pytest

    subjects = {one.name: Subject(one) for function in functions for one in declarations(function)}

    @pytest.mark.parametrize("promise", PROMISES)
    @pytest.mark.parametrize("name", list(subjects) or list(PROGRAMS))
    def test_contract(name: str, promise: str, tmp_path: Path) -> None:
        subject = subjects.setdefault(name, Subject(PROGRAMS[name]))
        if not (subject.case.timed and PROMISES[promise] in UNTIMED):
            PROMISES[promise](subject, tmp_path)

    return test_contract


def declarations(function: Callable[..., Any]) -> tuple[Declaration, ...]:
    """What a function declares.

    Raises
    ------
    ProgramInvalid (HR-106)
        Nothing.
    """
    found: tuple[Declaration, ...] = getattr(function, "declared", ())
    if not found:
        name = getattr(function, "__qualname__", repr(function))
        raise ProgramInvalid(f"{name} declares no program.", remedy='Decorate it: @hedgerow.program("What it does.", case=...)')
    return found


def _asked(subject: Subject) -> list[Heard]:
    """The first sums of each local function."""
    with hearing() as heard:
        for _ in subject.states(subject.built(InProcess(threads=1))):
            pass
    return few(heard)


def _kind(entry: Entry) -> tuple[str | None, ...]:
    """What of a question does not depend on earlier answers, as sizes and bounds may."""
    return (
        entry.verb,
        entry.query,
        entry.unit,
        entry.clip,
        entry.mechanism,
        entry.aggregation,
        str(entry.event),
        str(entry.sampling),
    )
