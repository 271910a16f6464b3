"""`OnDisk`: what very many parties keep between rounds, in files, so that memory does not grow with their states.

A party's state is packed into one run of bytes and written into a row of a file; all rows of a file are equally long, and
a state takes the file whose rows fit it best, so equal states share one file and parties may also keep arrays of different
shapes. In memory is only where each party's rows are: a few hundred bytes for a party.

No row that is needed is ever written over. A party has up to three:

    saved        what the last checkpoint on the disk refers to
    committed    the newest state whose answer was counted
    pending      proposed, until the next question says whether its answer was counted

A new state goes to a row that nothing refers to, or to the end of the file; a row that is none of the three is free again.
A checkpoint therefore copies no state: it is the table of committed rows. Its steps are

    1. synchronise the files                 rows are on the disk before anything refers to them
    2. write the checkpoint with the table   in one step, by its own means
    3. note its number in `states.json`      from now on older checkpoints cannot be resumed from
    4. what was saved before is free

A crash between any two leaves the last checkpoint with all its rows. Resuming, every row that the table does not name is
free, so what a crash left half-written is never read. Each row's hash is in the table and is compared when the row is read:
a row that was changed from outside, or belongs to a checkpoint of another course of the run, is refused, not used.

A state that did not change (a question that only evaluates) is not written again. Files grow to at most three rows for each
party that keeps a state of that size, and to one plus those that changed since the last checkpoint where cohorts are small.

`states.json` also names the run, so that another run does not write over states that a checkpoint refers to, and a process
locks the folder while it uses it. The files are readable by their owner only.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hedgerow.core.state import State
from hedgerow.errors import CannotWrite, CheckpointMismatch, ContributionInvalid
from hedgerow.store import sync_folder, write_bytes
from hedgerow.store.checkpoint import Packed

from .locks import locked
from .rows import RowFile, StateForm, row_bytes

if TYPE_CHECKING:
    from filelock import BaseFileLock

ABOUT = "states.json"
KEPT = "biufcSUmM"
"""Kinds of numpy types that are nothing but their bytes."""


class Slot(NamedTuple):
    """Where one state lies: the number of its form, its row in the file of that form's size, and the hash of its bytes."""

    form: int
    row: int
    hash: bytes


NOTHING = Slot(-1, -1, b"")
"""The state of a party that was asked and keeps nothing."""


@dataclass(slots=True)
class _Party:
    committed: Slot | None = None
    pending: Slot | None = None
    asked_in: int = -1
    saved: Slot | None = None
    packed: Slot | None = None  # saved, as soon as the checkpoint that is being written is


class OnDisk:
    """States in the files of a folder; see the head of this file.

    Several threads may call `settle` and `propose` for different parties at once.

    Parameters
    ----------
    folder : str or Path
        Made when the first party keeps something. A folder that a checkpoint refers to is used again only by a run that
        resumes from that checkpoint; one that no checkpoint refers to is started afresh.

    Raises
    ------
    CannotWrite (HR-104)
        Full disk, missing permission; the folder is used by another process, or holds the states of another run.
    CheckpointMismatch (HR-103)
        A checkpoint of another run or an older one; a file that was changed or lost.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._parties: dict[str, _Party] = {}
        self._forms: list[StateForm] = []
        self._number_of: dict[StateForm, int] = {}
        self._files: dict[int, RowFile] = {}
        self._run, self._checkpoint, self._open, self._lost = "", 0, False, ""
        self._held: list[BaseFileLock] = []
        weakref.finalize(self, _close, self._files, self._held)

    def __bool__(self) -> bool:
        return bool(self._parties)

    # ---- while a run goes on -----------------------------------------------------------------------------------------
    def settle(self, id: str, counted: Mapping[str, int]) -> State:
        """Commit or drop what waits at a party, then read its state."""
        with self._lock:
            self._begin()
            party = self._parties.setdefault(id, _Party())
            self._decide(party, counted.get(id))
            slot = party.committed
        return self._read(id, slot)

    def propose(self, id: str, state: State, asked_in: int) -> None:
        """Write a new state beside the old one."""
        arrays = {key: np.asarray(value) for key, value in state.items()}
        if odd := [key for key, value in arrays.items() if value.dtype.kind not in KEPT]:
            raise ContributionInvalid(f"{id} keeps {odd[0]!r}, which is no array of numbers.", remedy="Keep arrays by name.")
        form = StateForm.of(arrays)
        packed = form.pack(arrays)
        hash = hashlib.sha256(packed).digest()[:16]
        with self._lock:
            self._begin()
            party = self._parties.setdefault(id, _Party())
            before, party.pending = party.pending, None
            self._release(party, before)
            slot, new = self._slot_for(party, form, hash)
        if new:
            rows = self._files[row_bytes(form.nbytes)]
            try:
                rows.write(slot.row, packed)
            except OSError as error:
                with self._lock:
                    rows.free.append(slot.row)
                raise self._full(rows.path, error) from error
        party.pending, party.asked_in = slot, asked_in

    def committed(self, counted: Mapping[str, int]) -> Mapping[str, State]:
        """Settle every party; a state is read when it is looked up."""
        with self._lock:
            for id, party in self._parties.items():
                self._decide(party, counted.get(id))
            return _Reading(self._read, _kept(self._parties))

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    def pack(self, counted: Mapping[str, int]) -> Packed | None:
        """Settle every party, and return where the states lie, once they are on the disk."""
        with self._lock:
            if not self._open:
                return None
            self._usable()
            for id, party in self._parties.items():
                self._decide(party, counted.get(id))
                before, party.packed = party.packed, party.committed
                self._release(party, before)
            self._synchronise()
            kept = _kept(self._parties)
            used = sorted({slot.form for slot in kept.values()})
            again = {form: i for i, form in enumerate(used)}
            arrays = {
                "form": np.array([again[slot.form] for slot in kept.values()], np.int64),
                "row": np.array([slot.row for slot in kept.values()], np.int64),
                "hash": np.frombuffer(b"".join(slot.hash for slot in kept.values()), np.uint8).reshape(-1, 16),
            }
            about = {"run": self._run, "checkpoint": self._checkpoint + 1, "parties": list(kept)}
            return Packed(arrays, about | {"forms": [self._forms[form].parts for form in used]})

    def durable(self) -> None:
        """Refuse older checkpoints from now on, then give their rows free."""
        with self._lock:
            if not self._open:
                return
            self._note(self._checkpoint + 1)
            for party in self._parties.values():
                before, party.saved, party.packed = party.saved, party.packed, None
                self._release(party, before)

    def restore(self, states: Mapping[str, State]) -> None:
        """Start afresh with states that a checkpoint held itself."""
        with self._lock:
            self._forget()
        for id, state in states.items():
            self.propose(id, state, 0)
            self.settle(id, {id: 0})

    def unpack(self, packed: Packed) -> None:
        """Put the states of a checkpoint in the place of all others."""
        with self._lock:
            self._forget()
            self._resume(packed)

    def _forget(self) -> None:
        self._parties, self._forms, self._number_of, self._open = {}, [], {}, False
        _close(self._files, [])

    def _resume(self, packed: Packed) -> None:
        about = packed.about
        self._claim(partial(self._check_checkpoint, about["run"], about["checkpoint"]))
        self._forms = [StateForm(tuple((key, kind, tuple(shape)) for key, kind, shape in parts)) for parts in about["forms"]]
        self._number_of = {form: i for i, form in enumerate(self._forms)}
        forms, rows = packed.arrays["form"], packed.arrays["row"]
        nbytes = np.array([form.nbytes for form in self._forms], np.int64)[forms]
        sizes = np.array([row_bytes(form.nbytes) for form in self._forms], np.int64)[forms]
        try:
            for size in np.unique(sizes).tolist():
                theirs = sizes == size
                self._files[size] = RowFile.holding(self.folder, size, rows[theirs], nbytes[theirs])
        except OSError as error:
            raise CheckpointMismatch(
                f"{self.folder} lacks states that the checkpoint refers to: {error}.", remedy="Start afresh in another folder."
            ) from error
        slots = map(Slot, forms.tolist(), rows.tolist(), (row.tobytes() for row in packed.arrays["hash"]))
        self._parties = {id: _Party(slot, saved=slot) for id, slot in zip(about["parties"], slots, strict=True)}
        self._run, self._open = about["run"], True
        self._note(about["checkpoint"])

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _decide(self, party: _Party, counted: int | None) -> None:
        if party.pending is not None:
            lost, party.pending = party.pending, None
            if counted == party.asked_in:
                lost, party.committed = party.committed, lost
            self._release(party, lost)

    def _release(self, party: _Party, slot: Slot | None) -> None:
        """Free a row that the party does not need any more."""
        if slot is not None and slot not in (NOTHING, party.committed, party.pending, party.saved, party.packed):
            self._files[row_bytes(self._forms[slot.form].nbytes)].free.append(slot.row)

    def _slot_for(self, party: _Party, form: StateForm, hash: bytes) -> tuple[Slot, bool]:
        """A row for a state, and whether it is to be written: not if it equals the committed one, or is empty."""
        if not form.parts:
            return NOTHING, False
        number = self._number_of.setdefault(form, len(self._forms))
        if number == len(self._forms):
            self._forms.append(form)
        if party.committed is not None and (party.committed.form, party.committed.hash) == (number, hash):
            return party.committed, False
        size = row_bytes(form.nbytes)
        if size not in self._files:
            try:
                self._files[size] = RowFile.empty(self.folder, size)
            except OSError as error:
                raise self._full(self.folder, error) from error
        return Slot(number, self._files[size].take(), hash), True

    def _read(self, id: str, slot: Slot | None) -> State:
        if slot is None or slot is NOTHING:
            return {}
        self._usable()
        form = self._forms[slot.form]
        rows = self._files[row_bytes(form.nbytes)]
        packed = np.empty(form.nbytes, np.uint8)
        try:
            whole = rows.read(slot.row, packed) and hashlib.sha256(packed).digest()[:16] == slot.hash
        except OSError as error:
            remedy = "Resume from the last checkpoint when the disk is back."
            raise CheckpointMismatch(f"{rows.path} cannot be read: {error.strerror}.", remedy=remedy) from error
        if not whole:
            raise CheckpointMismatch(
                f"row {slot.row} of {rows.path} is not the state that {id} kept: it was changed or lost since.",
                remedy="Start afresh in another folder; two runs cannot share one.",
            )
        return form.unpack(packed)

    def _begin(self) -> None:
        """Start afresh in the folder, unless it is in use already."""
        self._usable()
        if self._open:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._claim(self._check_unused)
            for path in self.folder.glob(RowFile.PATTERN):
                path.unlink()
        except OSError as error:
            raise self._full(self.folder, error) from error
        self._run = secrets.token_hex(16)
        self._note(0)
        self._open = True

    def _note(self, checkpoint: int) -> None:
        """Write whose states these are, and from which checkpoint on they can be resumed."""
        write_bytes(self.folder / ABOUT, json.dumps({"run": self._run, "checkpoint": checkpoint}).encode())
        self._checkpoint = checkpoint

    def _claim(self, check: Callable[[Mapping[str, Any] | None], None]) -> None:
        """Take the folder for this store alone, if what it holds passes a check; nobody loses a folder that is refused."""
        check(self._about())
        if not self._held:
            try:
                self._held.append(locked(self.folder, self))
            except BlockingIOError as error:
                remedy = "Wait for it to end, or choose another folder."
                raise CannotWrite(f"{self.folder} is in use by another process.", remedy=remedy) from error
            except OSError as error:
                raise self._full(self.folder, error) from error
        check(self._about())

    def _about(self) -> dict[str, Any] | None:
        try:
            found = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            return {"run": str(found["run"]), "checkpoint": int(found["checkpoint"])}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            remedy = "Start afresh in another folder."
            raise CheckpointMismatch(f"{self.folder / ABOUT} cannot be read: {error}.", remedy=remedy) from error

    def _check_unused(self, found: Mapping[str, Any] | None) -> None:
        if found["checkpoint"] if found else any(self.folder.glob(RowFile.PATTERN)):
            raise CannotWrite(
                f"{self.folder} holds the states of another run" + (", to which a checkpoint refers." if found else "."),
                remedy="Resume from its checkpoint, choose another folder, or remove this one.",
            )

    def _check_checkpoint(self, run: str, checkpoint: int, found: Mapping[str, Any] | None) -> None:
        if found is None or found["run"] != run:
            what = "holds no states" if found is None else "holds the states of another run"
            raise CheckpointMismatch(f"{self.folder} {what}.", remedy="Resume with the folder of the run, or start afresh.")
        if checkpoint < found["checkpoint"]:
            raise CheckpointMismatch(
                f"the states in {self.folder} have gone on to checkpoint {found['checkpoint']}; this is {checkpoint}.",
                remedy="Resume from the newest checkpoint: on disk, states are kept for that one only.",
            )

    def give_up(self, reason: str) -> None:
        """Refuse everything from now on, and leave the folder to others."""
        self._lost = reason
        _close({}, self._held)

    def _usable(self) -> None:
        if self._lost:
            raise CannotWrite(f"{self.folder}: {self._lost}.", remedy="Resume from the last checkpoint with a new federation.")

    def _synchronise(self) -> None:
        try:
            for rows in self._files.values():
                rows.synchronise()
            sync_folder(self.folder)
        except OSError as error:
            self.give_up("states could not be written to the disk")  # nobody knows which
            raise self._full(self.folder, error) from error

    def _full(self, path: Path, error: OSError) -> CannotWrite:
        return CannotWrite(
            f"{path}: {error.strerror}. The last checkpoint, if any, and its states are untouched.",
            remedy="Make room or choose another folder, then resume.",
        )


def _kept(parties: Mapping[str, _Party]) -> dict[str, Slot]:
    """The committed slots of parties that keep anything."""
    slots = {id: party.committed for id, party in parties.items()}
    return {id: slot for id, slot in slots.items() if slot is not None and slot is not NOTHING}


@dataclass(frozen=True)
class _Reading(Mapping[str, State]):
    """States that are read when they are looked up."""

    read: Callable[[str, Slot | None], State]
    slots: Mapping[str, Slot]

    def __getitem__(self, id: str) -> State:
        return self.read(id, self.slots[id])

    def __iter__(self) -> Iterator[str]:
        return iter(self.slots)

    def __len__(self) -> int:
        return len(self.slots)


def _close(files: dict[int, RowFile], held: list[BaseFileLock]) -> None:
    """Close what a store has open."""
    for rows in files.values():
        rows.close()
    files.clear()
    while held:
        held.pop().release()
