"""Checkpoints: a state, the clock, the length of the ledger, and in simulation the parties' states, in one file.

A state is a frozen dataclass of arrays, numbers, strings and dicts of arrays, with at least `round: int`. The file is a
snapshot (`hedgerow.store.snapshot`): it replaces its predecessor in one step, so a crash leaves the old one or the new one.
Where parties' states are on disk the file says where they lie, and the engine keeps them there until the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hedgerow.core.federation import Federation, inside
from hedgerow.core.judged_rows import JudgedRows
from hedgerow.core.party import Parties
from hedgerow.core.question import ASIDE, MAIN
from hedgerow.core.run import Counts, Run
from hedgerow.core.state import State, StateStore
from hedgerow.errors import CheckpointMismatch

from .snapshot import read_arrays, write_arrays


@dataclass(frozen=True)
class Mark:
    """Where a federation stood when a state was yielded.

    Questions, cohorts, ledger entries, missing answers, findings, and rows that were judged by their proofs.
    """

    queries: int
    cohorts: int
    entries: int
    missing: int = 0
    aside: tuple[int, int] = (0, 0)
    findings: Mapping[str, Any] = field(default_factory=dict)
    judged: Sequence[Sequence[Any]] = ()

    @classmethod
    def of(cls, run: Run) -> Mark:
        main, aside = run.counts[MAIN], run.counts[ASIDE]
        return cls(
            main.questions,
            main.cohorts,
            len(run.ledger),
            run.missing,
            (aside.questions, aside.cohorts),
            dict(run.findings),
            [astuple(one) for one in run.judged],
        )

    def restore(self, run: Run) -> None:
        """Set the counters of a run back."""
        run.counts[MAIN], run.counts[ASIDE] = Counts(self.queries, self.cohorts), Counts(*self.aside)
        run.missing = self.missing
        run.findings.clear()
        run.findings.update(self.findings)
        run.judged.clear()
        run.ledger.judged.clear()
        run.note_judged(*(JudgedRows(*one) for one in self.judged))


@dataclass(frozen=True)
class Packed:
    """Where parties' states lie: arrays with an entry for each party, and `about` which states these are."""

    arrays: Mapping[str, np.ndarray]
    about: Mapping[str, Any]


@runtime_checkable
class Referable(StateStore, Protocol):
    """A store that keeps states itself, so that a checkpoint only says where."""

    def pack(self, counted: Mapping[str, int]) -> Packed | None:
        """Settle every party, and return where the states lie, once they cannot be lost; None where there are none."""

    def durable(self) -> None:
        """Learn that the checkpoint with what `pack` returned last cannot be lost any more."""

    def unpack(self, packed: Packed) -> None:
        """Put the states of a checkpoint in the place of all others."""


@dataclass(frozen=True)
class Checkpoint:
    """A state, and how to put a federation back to where it was when the state was yielded.

    What parties keep is in `parties`, or `elsewhere`.
    """

    state: Any
    mark: Mark
    counted: dict[str, int]
    parties: Mapping[str, State]
    elsewhere: Packed | None = None

    def restore(self, federation: Federation) -> None:
        """Set counters, ledger and party states to this checkpoint."""
        run = inside(federation).run
        self.mark.restore(run)
        run.counted.clear()
        run.counted.update(self.counted)
        replay = run.streams.seed is not None
        run.ledger.rewind(self.mark.entries, replay=replay)
        for guard in getattr(run.engine, "guards", {}).values():
            guard.rewind(self.mark.queries, replay=replay)
        states = states_of(run)
        if states is None:
            return
        if self.elsewhere is None:
            states.restore(self.parties)
        elif isinstance(states, Referable):
            states.unpack(self.elsewhere)
        else:
            raise CheckpointMismatch(
                "the checkpoint refers to parties' states on disk, and this engine keeps states in memory.",
                remedy="Resume with InProcess(state_folder=...), the folder of that run.",
            )


def states_of(run: Run) -> StateStore | None:
    """Where a simulation keeps its parties' states; None where parties keep their own."""
    held = getattr(run.engine, "held", None)
    if not isinstance(held, Parties):
        return None
    inner: StateStore | None = getattr(held.states, "behind", None)  # of a store that only listens
    return held.states if inner is None else inner


def save_checkpoint(path: str | Path, state: Any, federation: Federation, study: str) -> None:
    """Write a checkpoint in one step; `study` identifies what may resume from it."""
    arrays, plain = split(state)
    run = inside(federation).run
    states, counted = states_of(run), run.counted
    about = {"study": study, "state": type(state).__name__, "plain": plain, "counted": counted}
    if isinstance(states, Referable):
        packed = states.pack(counted)
        if packed is not None:
            arrays |= {f"elsewhere/{key}": value for key, value in packed.arrays.items()}
            about["elsewhere"] = packed.about
    elif states is not None:
        for party, kept in states.committed(counted).items():
            arrays |= {f"party/{party}/{key}": np.asarray(value) for key, value in kept.items()}
    write_arrays(path, arrays, about | {"mark": vars(Mark.of(run))})
    if isinstance(states, Referable):
        states.durable()


def load_checkpoint(path: str | Path, kind: type[Any], study: str) -> Checkpoint:
    """Read a checkpoint, refusing one of another study or program."""
    arrays, about = read_arrays(path)
    for what, found, wanted in [("study", about.get("study"), study), ("state", about.get("state"), kind.__name__)]:
        if found != wanted:
            raise CheckpointMismatch(
                f"{path} belongs to another {what}: {found!r}, not {wanted!r}.",
                remedy="Resume with the study that wrote it, or start afresh in another folder.",
            )
    own: dict[str, Any] = {}
    parties: dict[str, State] = {}
    theirs: dict[str, Any] = {}
    for key, value in arrays.items():
        if key.startswith("party/"):
            party, name = key.removeprefix("party/").rsplit("/", 1)
            parties.setdefault(party, {})[name] = value
        elif key.startswith("elsewhere/"):
            theirs[key.removeprefix("elsewhere/")] = value
        else:
            own[key] = value
    elsewhere = Packed(theirs, about["elsewhere"]) if "elsewhere" in about else None
    return Checkpoint(join(kind, own, about["plain"]), Mark(**about["mark"]), about["counted"], parties, elsewhere)


def split(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take a state apart into arrays (dicts of arrays with dotted keys) and plain values."""
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for item in fields(state):
        value = getattr(state, item.name)
        if isinstance(value, Mapping):
            arrays |= {f"{item.name}.{key}": np.asarray(part) for key, part in value.items()}
        elif isinstance(value, np.ndarray):
            arrays[item.name] = value
        else:
            plain[item.name] = value
    return arrays, plain


def join(kind: type[Any], arrays: Mapping[str, Any], plain: Mapping[str, Any]) -> Any:
    """Put a state together again."""
    found: dict[str, Any] = dict(plain)
    for key, value in arrays.items():
        name, dot, part = key.partition(".")
        if dot:
            found.setdefault(name, {})[part] = value
        else:
            found[name] = value
    return kind(**found)
