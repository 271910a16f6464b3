"""An aggregator's process: opens its folder, dials its coordinator, and answers until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hedgerow.core.toml import to_toml
from hedgerow.crypto.keys import AgreementKey
from hedgerow.errors import CannotWrite, ConfigInvalid, StationUnknown
from hedgerow.store.locks import lock_file, require_posix

from .aggregator.config import DATABASE, FILE, AggregatorConfig, load_config, parse_config
from .aggregator.gate import AggregatorGate
from .aggregator.heads import refuse_missing
from .aggregator.journal import AggregatorBase
from .aggregator.share_key import make_share_key, read_share_key
from .identity.key_folder import KeyFolder
from .linking import open_link
from .station.heads import FILE as MARK

log = logging.getLogger("hedgerow")

AT_ONCE = 64
"""Letters that are answered at the same time: of each study one."""


@dataclass(frozen=True)
class OpenedAggregator:
    """An aggregator's folder, opened."""

    config: AggregatorConfig
    folder: Path
    keys: KeyFolder
    shares: AgreementKey


def lay_out(folder: Path, name: str, coordinator: dict[str, str], **further: object) -> OpenedAggregator:
    """Make an aggregator's folder: keys, a key for shares, and a configuration.

    Parameters
    ----------
    coordinator : dict
        The section of the configuration.

    Raises
    ------
    CannotWrite (HR-104), KeyInvalid (HR-244), ConfigInvalid (HR-601)
    """
    told = {"name": name, "coordinator": coordinator, **further}
    config, file = parse_config(told), folder / FILE
    if file.exists():
        raise CannotWrite(f"{file} exists.", remedy="Choose a new folder.", asked=False)
    keys = KeyFolder.make(folder / config.keys.folder, name)
    shares = make_share_key(keys.path)
    try:
        file.write_text(to_toml(told).lstrip() + "\n", encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{file}: {error.strerror}.", remedy="Choose a folder that can be written.", asked=False) from None
    return OpenedAggregator(config, folder, keys, shares)


def open_folder(path: Path | str) -> OpenedAggregator:
    """Read configuration and keys.

    Raises
    ------
    ConfigInvalid (HR-601), KeyInvalid (HR-244)
    JournalLost (HR-618)
        The aggregator had a database, and it is not there.
    """
    config, folder = load_config(path)
    keys = KeyFolder(folder / config.keys.folder)
    if keys.name != config.name:
        raise ConfigInvalid(
            f"the keys in {keys.path} are those of {keys.name!r}, and the aggregator is {config.name!r}.",
            remedy="Name the aggregator as its keys do, or name their folder in keys.folder.",
        )
    refuse_missing(keys.path, folder / DATABASE)
    return OpenedAggregator(config, folder, keys, read_share_key(keys.path))


def open_gate(opened: OpenedAggregator) -> AggregatorGate:
    """The aggregator, ready to answer; its journal is whole.

    Raises
    ------
    StationUnknown (HR-613)
        The coordinator's public identity is not among the keys.
    LedgerDamaged (HR-231), JournalLost (HR-618)
    """
    config, keys = opened.config, opened.keys
    if config.coordinator.name not in keys.public_identities:
        raise StationUnknown(
            f"the public identity of {config.coordinator.name!r} is not among the keys of {config.name!r}.",
            remedy=f"hedgerow keys enrol {keys.path} {config.name}.welcome",
            asked=False,
        )
    base = AggregatorBase(opened.folder / DATABASE)
    try:
        gate = AggregatorGate(config, opened.shares, keys, base)
        gate.journal.verify()
        gate.heads.check()
    except BaseException:
        base.close()
        raise
    return gate


def rekey(path: Path | str) -> OpenedAggregator:
    """Make a new key for shares: whoever pinned the old one refuses the aggregator, and no epoch of the old one returns.

    Raises
    ------
    ConfigInvalid (HR-601), KeyInvalid (HR-244), CannotWrite (HR-104)
    """
    config, folder = load_config(path)
    keys = KeyFolder(folder / config.keys.folder)
    with alone(folder):
        shares = make_share_key(keys.path)
        (keys.path / MARK).unlink(missing_ok=True)
    return OpenedAggregator(config, folder, keys, shares)


def serve(path: Path | str, stop: threading.Event) -> None:
    """Run an aggregator until `stop` is set.

    Raises
    ------
    CannotWrite (HR-104)
        Another process runs this aggregator.
    RailUnavailable (HR-612)
        The coordinator does not accept its certificate.
    SystemUnsupported (HR-108)
    HedgerowError
        As `open_folder` and `open_gate`.
    """
    require_posix("An aggregator")
    opened = open_folder(path)
    section = opened.config.coordinator
    with alone(opened.folder):
        gate = open_gate(opened)
        try:
            link = open_link(section, opened.config.name, opened.folder, opened.keys)
            log.info("%s is up, dialling %s", opened.config.name, section.address or section.path)
            link.serve(gate.receive, stop, AT_ONCE)
        finally:
            gate.close()
            gate.base.close()
            log.info("%s stopped", opened.config.name)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second process of this aggregator out: two would not know of each other's totals."""
    (folder / "state").mkdir(mode=0o700, exist_ok=True)
    try:
        lock = lock_file(folder / "state" / "lock")
    except BlockingIOError:
        raise CannotWrite(
            f"another process runs the aggregator in {folder}.", remedy="Stop that one first.", asked=False
        ) from None
    try:
        yield
    finally:
        lock.release()
