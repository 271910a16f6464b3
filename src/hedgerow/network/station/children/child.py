"""A child's process: `python -m hedgerow.network.station.children.child DESCRIPTOR RECORDS`, started by `Subprocesses`.

It does one thing after the other, as it is told over its pipe, and ends when the gate closes that or dies.

    read       open the records and lay them out where all children find them
    rehearse   a study that asks to board
    open       an approved study; then `foresee` and `compute`, question by question

Who started it may end it at any moment. What it is told to keep on the disk is on the disk before it replies.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.crypto.keys import Identity, Roster
from hedgerow.engines.party_states import StateFiles
from hedgerow.engines.pipes import Body, Gone, Pipe, PipeMessage, found_on, lay_out
from hedgerow.engines.starting import end_with
from hedgerow.network.station.config import GuardSection, StationConfig, parse_config, read_policies
from hedgerow.network.station.journal import PartyCharge
from hedgerow.network.station.local_data import HeldElsewhere, LocalData, Roll, local_data
from hedgerow.network.station.submissions import Submission

from .facts import AskedQuestion, Uncomputed, told_of
from .runner import OwnKeys, StudyChild, ToOpen, ToRehearse, judged, opened

log = logging.getLogger("hedgerow")

Reply = tuple[str, Sequence[Body]]


class ChildWork:
    """What one child has been told so far.

    Parameters
    ----------
    records : int
        Descriptor of the memory in which the records are.
    """

    def __init__(self, records: int) -> None:
        self._records = records
        self._study: StudyChild | None = None
        self._guard = GuardSection()
        self._charges: list[PartyCharge] = []

    def do(self, told: PipeMessage) -> Reply | None:
        """Do what is told, and return what to reply; None where nothing is waited for."""
        kinds = {
            "read": self._read,
            "charges": self._charged,
            "rehearse": self._rehearse,
            "open": self._open,
            "guard": self._guarded,
            "foresee": self._foresee,
            "compute": self._compute,
        }
        return kinds[told.kind](*told.bodies)

    def _read(self, config: Body, about: Body) -> Reply:
        from hedgerow.network.station.data_section import open_records

        section, told = read_config(config), json.loads(bytes(about))
        folder = Path(told["folder"])
        table, ids = open_records(section.data, folder)
        policies = None
        if section.stores is not None and section.stores.policies is not None:
            policies = read_policies(folder / section.stores.policies)
        held = local_data(section, table, bytes.fromhex(told["secret"]), policies, ids)
        where = lay_out(held.columns, self._records)
        return "held", [where.encode(), held.roll.pack(), held.sizes.astype(np.int64).tobytes()]

    def _charged(self, body: Body) -> None:
        """Charges of the journal come in parts, before the study that they are for."""
        self._charges += [PartyCharge(**one) for one in json.loads(bytes(body))]

    def _rehearse(
        self, config: Body, roll: Body, sizes: Body, about: Body, toml: Body, description: Body, known: Body
    ) -> Reply:
        section = read_config(config)
        held = HeldElsewhere(section.declared, Roll.unpack(bytes(roll)), np.frombuffer(sizes, np.int64))
        came = Submission.from_json(json.loads(bytes(about)), bytes(toml), bytes(description))
        charges: Iterable[PartyCharge] = self._charges
        names = json.loads(bytes(known))
        found = judged(ToRehearse(section, came, lambda: charges, None if names is None else tuple(names)), held)
        if isinstance(found, Exception):
            raise found
        return "judged", [json.dumps(found.to_json()).encode()]

    def _open(
        self, config: Body, where: Body, roll: Body, sizes: Body, about: Body, toml: Body, description: Body, own: Body
    ) -> Reply:
        section, told = read_config(config), json.loads(bytes(own))
        held = records_of(section, where, roll, sizes, self._records)
        submission = Submission.from_json(json.loads(bytes(about)), bytes(toml), bytes(description))
        roster = None if told["roster"] is None else Roster({k: bytes.fromhex(v) for k, v in told["roster"].items()})
        keys = OwnKeys(Identity.from_bytes(bytes.fromhex(told["identity"])), roster)
        answered = None if told["answered"] is None else Path(told["answered"])
        states = StateFiles(None if told["states"] is None else Path(told["states"]))
        self._study = opened(ToOpen(section, submission, keys, answered, states, told["begun"]), held)
        self._guard = section.guard
        return "opened", []

    def _guarded(self, guard: Body) -> None:
        self._guard = GuardSection.model_validate(json.loads(bytes(guard)))

    def _foresee(self, at: Body, common: Body, own: Body) -> Reply:
        assert self._study is not None
        asked = self._study.foresee(self._guard, datetime.fromisoformat(bytes(at).decode()), bytes(common), bytes(own))
        return "foreseen", [json.dumps(asked.to_json()).encode()]

    def _compute(self, question: Body) -> Reply:
        assert self._study is not None
        found = self._study.compute(AskedQuestion.from_json(json.loads(bytes(question))))
        about = {"codes": dict(found.codes), "n_answered": found.n_answered, "cohort": found.cohort, "came": found.came}
        return "computed", [json.dumps(about).encode(), found.body]


def read_config(raw: Body) -> StationConfig:
    """The station's configuration, as the gate has it."""
    return parse_config(json.loads(bytes(raw)))


def records_of(config: StationConfig, where: Body, roll: Body, sizes: Body, descriptor: int) -> LocalData:
    """The records, as they lie in memory that all children share and none can change."""
    memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)  # until its last column is gone
    columns = found_on(memoryview(memory), bytes(where).decode())
    return LocalData(config.declared, Roll.unpack(bytes(roll)), columns, np.frombuffer(sizes, np.int64))


def main(descriptor: int, records: int) -> None:
    """Work until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process decides when it ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no records on the disk, whatever fails
    with suppress(OSError):
        os.nice(5)  # the gate comes first
    end = socket.socket(fileno=descriptor)
    threading.Thread(target=end_with, args=(end.fileno(),), daemon=True).start()
    line, work = Pipe(end), ChildWork(records)
    try:
        line.send(0, "ready")
        while True:
            told = line.receive()
            if told.kind == "settle":
                _settle(json.loads(bytes(told.bodies[0])))
                continue
            reply = _done(work, told)
            del told
            if reply is not None:
                line.send(0, *reply)
    except Gone:
        return


def _done(work: ChildWork, told: PipeMessage) -> Reply | None:
    try:
        return work.do(told)
    except Uncomputed as failed:
        return "uncomputed", [json.dumps(told_of(failed.error) | {"first": failed.code}).encode()]
    except MemoryError:
        return "memory", []
    except Exception as error:
        about = told_of(error)
        if about["own"]:
            log.error("an error of this station's own", exc_info=error)
        return "refused", [json.dumps(about).encode()]


def _settle(how: dict[str, Any]) -> None:
    """Take over the gate's way of logging, and its limits."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    log.setLevel(how["level"])
    if how["data"] and hasattr(resource, "RLIMIT_DATA"):
        resource.setrlimit(resource.RLIMIT_DATA, (how["data"], how["data"]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
