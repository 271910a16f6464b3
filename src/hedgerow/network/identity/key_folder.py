"""Key folders: one holder's private keys, and the public identities of those it trusts.

    keys/                 mode 0700
      private.json        0600   private keys: identity, agreement, TLS; at a coordinator also the authority's
      roster.json         0600   public: my public identity, those that I trust, certificates, who was here before

Both files are read again when they changed on disk, so that a running process loses a revoked public identity as well.
They are replaced in one step. `roster.json` says which of the private keys are in use: it is written last, and whatever
moment a crash takes, the folder is what it was or what it should become.

How public identities come and go is in `hedgerow.network.identity.enrolment`.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from hedgerow.crypto import certificates
from hedgerow.crypto.keys import Roster
from hedgerow.errors import CannotWrite, KeyInvalid
from hedgerow.store import write_bytes
from hedgerow.store.locks import lock_file
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, checked_name
from hedgerow.wire.tls import Tls

from .trust_store import KeySet, Private, TrustStore, TrustStoreEntry, issued

PRIVATE, ROSTER, LOCK = "private.json", "roster.json", "lock"
FORMAT = 1
LOOPBACK = ("localhost", "127.0.0.1")
OTHERS = stat.S_IRWXG | stat.S_IRWXO
MOST_BYTES = 1 << 26

Read = TypeVar("Read")


class KeyFolder:
    """One holder's keys and roster, as they are on disk now.

    Parameters
    ----------
    path : path
        A folder that `KeyFolder.make` made, which nobody else may read.

    Raises
    ------
    KeyInvalid (HR-244)
        There are no keys, others may read them, or a file is damaged.

    Examples
    --------
    >>> hub = KeyFolder.make("hub/keys", "hub", authority=True, hosts=["127.0.0.1"])
    >>> hub.key_material.public_identity.name, dict(hub.public_identities)
    ('hub', {})
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._seen: dict[str, tuple[tuple[int, ...], Any]] = {}
        self._public_identities: tuple[TrustStore, Mapping[str, PublicIdentity]] | None = None
        if not (self.path / ROSTER).is_file():
            raise _refusal(f"{self.path} holds no keys", f"Make them: hedgerow keys init {self.path} --name NAME")
        _check_closed(self.path)
        self.trust_store, self.private  # noqa: B018  refuse a damaged folder now, not at the first letter

    @classmethod
    def make(
        cls, path: Path | str, name: str, authority: bool = False, *, hosts: Sequence[str] = (), now: datetime | None = None
    ) -> Self:
        """Make keys in a new or empty folder.

        Parameters
        ----------
        name : str
            Of the station or the coordinator; goes into its certificate.
        authority : bool
            Whether this is a coordinator, which issues the certificates of all.
        hosts : sequence of str
            Names and addresses under which stations reach a coordinator; the loopback's by default.

        Raises
        ------
        KeyInvalid (HR-244)
            The name or a host cannot be used, or the folder holds keys.
        CannotWrite (HR-104)
            The folder cannot be written.
        """
        folder, moment = Path(path), now or datetime.now(UTC)
        if (folder / ROSTER).exists():
            raise _refusal(f"{folder} holds keys already", "Choose another folder, or rotate: hedgerow keys rotate FOLDER")
        if hosts and not authority:
            raise _refusal(f"{name!r} was given hosts and is no authority", "A station dials out: leave the hosts out.")
        hosts = tuple(dict.fromkeys(hosts)) or LOOPBACK * authority
        keys = KeySet.fresh()
        me, issuer, signing = TrustStoreEntry(keys.public_identity(checked_name(name)), since=f"{moment:%Y-%m-%d}"), b"", b""
        if authority:
            issuer, signing = certificates.authority(name, now=moment)
            me = issued(me, certificates.request(name, keys.tls), issuer, signing, hosts=hosts, now=moment)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_closed(folder)
        except OSError as error:
            raise CannotWrite(
                f"{folder}: {error.strerror}.", remedy="Choose a folder that can be written.", asked=False
            ) from None
        _write(folder / PRIVATE, Private({"1": keys}, signing).to_json())
        _write(folder / ROSTER, TrustStore(me, "1", authority=issuer, hosts=hosts).to_json())
        return cls(folder)

    @property
    def name(self) -> str:
        """Of the holder."""
        return self.trust_store.me.public_identity.name

    @property
    def is_authority(self) -> bool:
        """Whether this holder issues certificates."""
        return bool(self.private.authority)

    @property
    def key_material(self) -> KeyMaterial:
        """This holder's public identity and private keys, as they are now."""
        trust_store, keys = self._current()
        return KeyMaterial(trust_store.me.public_identity, keys.identity, keys.agreement)

    @property
    def tls(self) -> Tls:
        """What a rail needs. Raises KeyInvalid (HR-244) where no certificate was issued yet, or it has expired."""
        trust_store, keys = self._current()
        if not trust_store.authority:
            raise _refusal(
                f"{self.name!r} has no certificate yet",
                f"Send {self.name}.request to the coordinator, and enrol what comes back: "
                f"hedgerow keys enrol {self.path} {self.name}.welcome",
            )
        certificates.check_issued(trust_store.me.certificate, trust_store.authority, self.name, key=keys.tls)
        return Tls(trust_store.authority, trust_store.me.certificate, keys.tls)

    @property
    def public_identities(self) -> Mapping[str, PublicIdentity]:
        """Name -> public identity of those trusted now: the stations of a coordinator, the coordinator of a station."""
        trust_store = self.trust_store
        if self._public_identities is None or self._public_identities[0] is not trust_store:
            public_identities = {
                entry.public_identity.name: entry.public_identity for entry in trust_store.entries if not entry.revoked
            }
            self._public_identities = trust_store, MappingProxyType(public_identities)
        return self._public_identities[1]

    @property
    def roster(self) -> Roster:
        """Public identities of all stations by name, as the coordinator listed them: what an active aggregation pins."""
        if self.is_authority:
            return Roster({name: public_identity.identity for name, public_identity in self.public_identities.items()})
        return Roster(self.trust_store.stations)

    def admits(self, name: str, certificate: bytes) -> bool:
        """Whether the holder of a TLS certificate with this fingerprint (SHA-256 of its DER) may connect under a name, now."""
        public_identity = self.public_identities.get(name)
        return public_identity is not None and public_identity.certificate == certificate != b""

    @property
    def trust_store(self) -> TrustStore:
        """The content of `roster.json` now."""
        return self._read(ROSTER, TrustStore.from_json)

    @property
    def private(self) -> Private:
        """The content of `private.json` now."""
        return self._read(PRIVATE, Private.from_json)

    def _current(self) -> tuple[TrustStore, KeySet]:
        """The trust store, and the private keys that it says are in use."""
        for _ in range(3):  # between two files a rotation may end, and the keys of the trust store that was read first are gone
            trust_store = self.trust_store
            found = self.private.keys.get(trust_store.current)
            if found is not None:
                return trust_store, found
        raise _refusal(f"{self.path / PRIVATE} lacks the keys that {ROSTER} is for", "Restore both files from one backup.")

    @contextmanager
    def changing(self) -> Iterator[Callable[..., None]]:
        """Hold the folder for a change, and yield what writes it: private keys first, then the trust store."""
        lock = lock_file(self.path / LOCK, wait=True)
        try:
            yield self._store
        finally:
            lock.release()

    def _store(self, trust_store: TrustStore, private: Private | None = None) -> None:
        if private is not None:
            _write(self.path / PRIVATE, private.to_json())
        _write(self.path / ROSTER, trust_store.to_json())
        used = {trust_store.current, trust_store.pending, trust_store.previous}
        held = self.private
        if dropped := held.keys.keys() - used:
            kept = {number: keys for number, keys in held.keys.items() if number not in dropped}
            _write(self.path / PRIVATE, Private(kept, held.authority).to_json())

    def _read(self, name: str, parse: Callable[[Any], Read]) -> Read:
        """Return what a file holds; read it again only where it changed."""
        path = self.path / name
        try:
            found = path.stat()
            mark = (found.st_ino, found.st_mtime_ns, found.st_size)
            seen = self._seen.get(name)
            if seen is not None and seen[0] == mark:
                known: Read = seen[1]
                return known
            if name == PRIVATE:
                _check_closed(path)
            if found.st_size > MOST_BYTES:
                raise ValueError("too long")
            raw = json.loads(path.read_bytes())
            if raw.pop("hedgerow") != FORMAT:
                raise ValueError("another format")
            parsed = parse(raw)
        except OSError as error:
            raise _refusal(
                f"{path} cannot be read: {error.strerror}", "Restore the folder from a backup, or make new keys."
            ) from None
        except KeyInvalid:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            remedy = "Restore the folder from a backup, or make new keys."
            raise _refusal(f"{path} is damaged, or of another version", remedy) from None
        self._seen[name] = mark, parsed
        return parsed

    def __repr__(self) -> str:
        return f"KeyFolder({str(self.path)!r}, {self.name!r}, {len(self.public_identities)} public identities)"


def _check_closed(path: Path) -> None:
    """Refuse what others than its owner may read."""
    mode = path.stat().st_mode
    if os.name == "posix" and mode & OTHERS:
        wanted = "700" if path.is_dir() else "600"
        raise _refusal(f"others may read {path}: its mode is {stat.S_IMODE(mode):o}", f"Close it: chmod {wanted} {path}")


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file in one step, so that nobody ever reads half of it, readable by its owner only."""
    raw = json.dumps({"hedgerow": FORMAT, **content}, indent=1).encode()
    try:
        write_bytes(path, raw, private=True)
    except CannotWrite as error:
        remedy = "Free space or correct its permissions, and give the command again."
        raise CannotWrite(error.reason, remedy=remedy, asked=False) from None


def _refusal(what: str, remedy: str) -> KeyInvalid:
    return KeyInvalid(f"{what}.", remedy=remedy, asked=False)
