"""A station's process: opens its folder, dials its coordinator, and answers until it is told to stop."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hedgerow.engines.rails.rail import Link
from hedgerow.errors import CannotWrite, StationUnknown
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import StationConfig, read_config, read_policies
from hedgerow.network.station.data_section import open_table
from hedgerow.network.station.heads import refuse_missing
from hedgerow.network.station.station import Station

from .console.contact import Contact
from .console.serve import address_file, serving
from .station.local_data import LocalData, local_data
from .station.review import DATABASE, ROLL, Review, keys_of

try:
    import fcntl
except ImportError:  # pragma: no cover - not a system of the POSIX family: a second process is not kept out there
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("hedgerow")


@dataclass(frozen=True)
class Opened:
    """A station's folder, opened."""

    config: StationConfig
    folder: Path
    keys: KeyFolder
    base: Base
    held: LocalData

    def station(self) -> Station:
        """The station, ready to answer; its journal is whole.

        Raises
        ------
        LedgerDamaged (HR-231)
        JournalLost (HR-618)
            It is not the one that the station had, or lacks its end.
        """
        found = Station(self.config, self.held, self.keys, self.base, answered=self.folder / "state" / "answered")
        found.journal.verify()
        found.heads.check()
        return found


def open_folder(path: Path | str) -> Opened:
    """Read configuration, keys and records.

    Raises
    ------
    ConfigInvalid (HR-601), KeyInvalid (HR-244), SourceUnreadable (HR-614), CannotWrite (HR-104)
    StationUnknown (HR-613)
        The coordinator's public identity is not among the keys.
    JournalLost (HR-618)
        The station had a database, and it is not there.
    """
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
    base = Base(folder / DATABASE)
    try:
        table = open_table(config.data, folder)
        policies = None
        if config.stores is not None and config.stores.policies is not None:
            policies = read_policies(folder / config.stores.policies)
        held = local_data(config, table, base.kept("store names", os.urandom(32)), policies)
    except BaseException:
        base.close()
        raise
    return Opened(config, folder, keys, base, held)


def open_link(config: StationConfig, folder: Path, keys: KeyFolder) -> Link:
    """The station's end of its rail.

    Raises
    ------
    RailUnavailable (HR-612), MissingExtra (HR-105)
    """
    section = config.coordinator
    if section.rail == "grpc":
        from hedgerow.engines.rails.grpc_rail import GrpcLink

        dialled: Link = GrpcLink(str(section.address), keys.tls)
        return dialled
    assert section.path is not None
    path = folder / section.path
    if section.rail == "socket":
        from hedgerow.engines.rails.socket_rail import SocketLink

        local: Link = SocketLink(path, config.name)
        return local
    from hedgerow.engines.rails.socket_rail import SocketDoor

    door: Link = SocketDoor(path, config.name)  # the relay of NVFlare runs beside the station, and comes to it
    return door


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
    """
    opened = open_folder(path)
    try:
        with alone(opened.folder):
            opened.base.keep(ROLL, opened.held.roll.pack())
            station = opened.station()
            link = open_link(opened.config, opened.folder, opened.keys)
            where = opened.config.coordinator.address or opened.config.coordinator.path
            line = Contact(link)
            with console(opened, line):
                log.info("%s is up: %d parties, dialling %s", opened.config.name, len(opened.held), where)
                link.serve(line.listening(station.receive), stop)
            station.close()
    finally:
        opened.base.close()
        log.info("%s stopped", opened.config.name)


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
        inbox, records = Review(config, opened.keys, base), int(opened.held.sizes.sum())
        with serving(inbox, line, config.console.port, records=records) as address, address_file(address, opened.folder):
            yield
    finally:
        base.close()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second process of this station out: two would not know of each other's answers."""
    (folder / "state").mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder / "state" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CannotWrite(
                    f"another process runs the station in {folder}.", remedy="Stop that one first.", asked=False
                ) from None
        yield
    finally:
        os.close(descriptor)
