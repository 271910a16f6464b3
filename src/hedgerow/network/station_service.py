"""A station's process: opens its folder, dials its coordinator, and answers until it is told to stop.

It is the gate (`station.station`): records are read, studies rehearsed and questions answered in children of it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.data.faults import values_refused
from hedgerow.engines.party_states import StateFiles
from hedgerow.errors import CannotWrite, DataError, StationUnknown
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.base import Base
from hedgerow.network.station.closed import ROLL, Nothing, held_closed
from hedgerow.network.station.config import StationConfig, read_config, read_policies
from hedgerow.network.station.data_section import open_records
from hedgerow.network.station.heads import refuse_missing
from hedgerow.network.station.station import Station
from hedgerow.store.locks import lock_file, require_posix

from .console.contact import Contact
from .console.serve import address_file, serving
from .linking import open_link
from .station.children.process import Stopped
from .station.children.runner import Runner
from .station.children.subprocesses import Records, Subprocesses
from .station.local_data import Held, local_data
from .station.review import DATABASE, Review, keys_of

log = logging.getLogger("hedgerow")

AT_ONCE = 64
"""Letters that are answered at the same time: of each study one, so that none waits for another's."""

DEVICE = "HEDGEROW_DEVICE"
"""Environment variable by which processes that train learn of the station's device; see `hedgerow.learn.devices`."""

WATCH = 1.0
"""Seconds between two looks at the configuration."""


@dataclass(frozen=True)
class Opened:
    """A station's folder, opened."""

    config: StationConfig
    folder: Path
    keys: KeyFolder
    base: Base
    held: Held
    runner: Runner | None = None
    file: Path | None = None
    closed: int = 0

    @property
    def state(self) -> str:
        """What the log says of it."""
        return "closed" if self.closed else "up"

    def station(self) -> Station:
        """The station, ready to answer; its journal is whole.

        Raises
        ------
        LedgerDamaged (HR-231)
        JournalLost (HR-618)
            It is not the one that the station had, or lacks its end.
        """
        answered = self.folder / "state" / "answered"
        how: dict[str, Any] = {"runner": self.runner, "file": self.file, "closed": self.closed}
        found = Station(self.config, self.held, self.keys, self.base, answered=answered, **how)
        found.journal.verify()
        found.heads.check()
        going_on = [one.study for one in found.submissions.all("waiting", "approved")]  # of a journal that is whole
        StateFiles(answered.with_name("states")).sweep(going_on)
        return found


def open_folder(path: Path | str) -> Opened:
    """Read configuration, keys and records, all in this process.

    Raises
    ------
    ConfigInvalid (HR-601), KeyInvalid (HR-244), SourceUnreadable (HR-614), CannotWrite (HR-104)
    StationUnknown (HR-613)
        The coordinator's public identity is not among the keys.
    JournalLost (HR-618)
        The station had a database, and it is not there.
    """
    config, folder, keys, base = open_without_records(path)
    try:
        table, ids = open_records(config.data, folder)
        policies = None
        if config.stores is not None and config.stores.policies is not None:
            policies = read_policies(folder / config.stores.policies)
        held = local_data(config, table, store_names(base), policies, ids)
    except BaseException:
        base.close()
        raise
    return Opened(config, folder, keys, base, held)


def open_gate(path: Path | str, stop: threading.Event) -> Opened:
    """Read configuration and keys, and let a child read the records; what is computed of them is computed in others.

    Where values do not fit what is declared of them the table stays closed: the log says which, and the station says that it
    waits.

    Raises
    ------
    Stopped
        `stop` was set meanwhile.
    HedgerowError
        As `open_folder`.
    """
    config, folder, keys, base = open_without_records(path)
    if config.device is not None:
        os.environ[DEVICE] = config.device  # of the processes that train, which are started from here
    try:
        records = Records.read(config, folder, store_names(base), stop.is_set)
    except DataError as error:
        if not (count := values_refused(error)):
            base.close()
            raise
        log.error("the table stays closed, %d values refused: %s\n%s", count, error.reason, error.remedy)
        return Opened(config, folder, keys, base, held_closed(config, base), Nothing(), Path(path), count)
    except BaseException:
        base.close()
        raise
    return Opened(config, folder, keys, base, records.held, Subprocesses(records), Path(path))


def open_without_records(path: Path | str) -> tuple[StationConfig, Path, KeyFolder, Base]:
    """Read configuration and keys, and open the database."""
    config, folder = read_config(path)
    keys = keys_of(config, folder)
    refuse_missing(keys.path, folder / DATABASE)
    if config.coordinator.name not in keys.public_identities:
        known = ", ".join(sorted(keys.public_identities)) or "nobody's"
        raise StationUnknown(
            f"the public identity of {config.coordinator.name!r} is not among the keys of {config.name!r}; there is {known}.",
            remedy=f"hedgerow keys enrol {keys.path} {config.name}.welcome",
            asked=False,
        )
    return config, folder, keys, Base(folder / DATABASE)


def store_names(base: Base) -> bytes:
    """The secret by which stores are named."""
    return base.kept("store names", os.urandom(32))


def serve(path: Path | str, stop: threading.Event) -> None:
    """Run a station until `stop` is set.

    Raises
    ------
    CannotWrite (HR-104)
        Another process runs this station.
    RailUnavailable (HR-612)
        The coordinator does not accept this station's certificate.
    MissingExtra (HR-105), ConfigInvalid (HR-601)
        The console page cannot be served.
    SystemUnsupported (HR-108)
        This is no system of the POSIX family.
    """
    require_posix("A station")
    try:
        opened = open_gate(path, stop)
    except Stopped:
        return
    try:
        with alone(opened.folder):
            if not opened.closed:
                opened.base.keep(ROLL, opened.held.roll.pack())
            station = opened.station()
            link = open_link(opened.config.coordinator, opened.config.name, opened.folder, opened.keys)
            where = opened.config.coordinator.address or opened.config.coordinator.path
            line = Contact(link)
            with console(opened, line):
                log.info("%s is %s: %d parties, dialling %s", opened.config.name, opened.state, len(opened.held), where)
                watching = threading.Thread(target=watch, args=(station, stop), name="hedgerow-rules", daemon=True)
                watching.start()
                try:
                    link.serve(line.listening(station.receive), stop, AT_ONCE)
                finally:
                    stop.set()
                    watching.join()  # it ends what runs; two at once would close one thing twice
                    station.close()
    finally:
        if opened.runner is not None:
            opened.runner.close()
        opened.base.close()
        log.info("%s stopped", opened.config.name)


def watch(station: Station, stop: threading.Event) -> None:
    """Keep to the guard of the file, also where no letters come; then end what runs."""
    while not stop.wait(WATCH):
        try:
            station.refresh()
        except Exception:
            log.exception("what the configuration says now could not be taken over")
    station.close()  # what runs ends while the connection is being closed


@contextmanager
def console(opened: Opened, line: Contact) -> Iterator[None]:
    """Serve the owner's page meanwhile, where the configuration has one.

    Raises
    ------
    MissingExtra (HR-105), ConfigInvalid (HR-601)
    """
    config = opened.config
    if config.console is None:
        yield
        return
    base = Base(opened.folder / DATABASE)  # of its own: it waits for its turn as the command does
    try:
        inbox, records = Review(config, opened.keys, base, file=opened.file), int(opened.held.sizes.sum())
        with serving(inbox, line, config.console.port, records=records) as address, address_file(address, opened.folder):
            yield
    finally:
        base.close()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second process of this station out: two would not know of each other's answers."""
    (folder / "state").mkdir(mode=0o700, exist_ok=True)
    try:
        lock = lock_file(folder / "state" / "lock")
    except BlockingIOError:
        raise CannotWrite(
            f"another process runs the station in {folder}.", remedy="Stop that one first.", asked=False
        ) from None
    try:
        yield
    finally:
        lock.release()
