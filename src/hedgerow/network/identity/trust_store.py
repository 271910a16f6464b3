"""What a key folder holds: key sets, and a trust store of public identities with what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from hedgerow.crypto import certificates
from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.crypto.messages import digest
from hedgerow.wire.envelope import PublicIdentity


def fingerprint(name: str, identity: bytes) -> str:
    """Return what two people compare: 128 bits over a name and its public identity, in eight groups.

    The identity signs everything else that is exchanged, so a fingerprint that agrees vouches for all of it.
    """
    raw = digest("fingerprint", name.encode(), identity)[:16].hex().upper()
    return " ".join(raw[at : at + 4] for at in range(0, 32, 4))


@dataclass(frozen=True)
class KeySet:
    """The private keys of one holder, made together. `tls` is PEM."""

    identity: Identity
    agreement: AgreementKey
    tls: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Self:
        """Return keys from the operating system's entropy."""
        return cls(Identity.fresh(), AgreementKey.fresh(), certificates.tls_key())

    def public_identity(self, name: str, certificate: bytes = b"") -> PublicIdentity:
        """Return the public halves under a name; `certificate` is a fingerprint."""
        return PublicIdentity(name, self.identity.public, self.agreement.public, certificate)

    def to_json(self) -> dict[str, str]:
        return {"identity": self.identity.private.hex(), "agreement": self.agreement.private.hex(), "tls": self.tls.decode()}

    @classmethod
    def from_json(cls, raw: Mapping[str, str]) -> Self:
        seed, agreement = bytes.fromhex(raw["identity"]), bytes.fromhex(raw["agreement"])
        return cls(Identity.from_bytes(seed), AgreementKey.from_bytes(agreement), raw["tls"].encode())


@dataclass(frozen=True)
class Private:
    """The content of `private.json`: key sets by number, and the authority's key where this holder is one."""

    keys: Mapping[str, KeySet]
    authority: bytes = field(default=b"", repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"keys": {name: keys.to_json() for name, keys in self.keys.items()}, "authority": self.authority.decode()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        return cls({name: KeySet.from_json(keys) for name, keys in raw["keys"].items()}, raw["authority"].encode())


@dataclass(frozen=True)
class TrustStoreEntry:
    """A line of a roster: a public identity, its certificate (PEM), since when it is there, since when and why it is not."""

    public_identity: PublicIdentity
    certificate: bytes = field(default=b"", repr=False)
    since: str = ""
    revoked: str = ""
    reason: str = ""

    @property
    def fingerprint(self) -> str:
        """What people compare."""
        return fingerprint(self.public_identity.name, self.public_identity.identity)

    def to_json(self) -> dict[str, str]:
        public_identity, certificate = self.public_identity, self.certificate
        return {
            "name": public_identity.name,
            "fingerprint": self.fingerprint,
            "identity": public_identity.identity.hex(),
            "agreement": public_identity.agreement.hex(),
            "certificate": public_identity.certificate.hex(),
            "valid_until": f"{certificates.valid_until(certificate):%Y-%m-%d}" if certificate else "",
            "since": self.since,
            "revoked": self.revoked,
            "reason": self.reason,
            "pem": certificate.decode(),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, str]) -> Self:
        keys = (bytes.fromhex(raw[name]) for name in ("identity", "agreement", "certificate"))
        return cls(PublicIdentity(raw["name"], *keys), raw["pem"].encode(), raw["since"], raw["revoked"], raw["reason"])


def issued(
    entry: TrustStoreEntry,
    asked: bytes,
    authority: bytes,
    key: bytes,
    *,
    hosts: Sequence[str] = (),
    now: datetime | None = None,
) -> TrustStoreEntry:
    """Return an entry with a new certificate for what it asked."""
    certificate = certificates.issue(authority, key, asked, entry.public_identity.name, hosts=hosts, now=now)
    public_identity = replace(entry.public_identity, certificate=certificates.fingerprint(certificate))
    return replace(entry, public_identity=public_identity, certificate=certificate)


@dataclass(frozen=True)
class TrustStore:
    """The content of `roster.json`.

    Attributes
    ----------
    me : TrustStoreEntry
        This holder.
    current, pending, previous : str
        Which key sets of `private.json` are in use, wait for a welcome, and were in use before (of a coordinator, whose
        welcomes they sign as well).
    edition : int
        Grows with every change at the coordinator. A station takes no welcome of an earlier edition.
    authority : bytes
        The authority's certificate, PEM; empty until a station is welcome.
    hosts : tuple of str
        Under which a coordinator is reached; empty for a station.
    entries : tuple of TrustStoreEntry
        Of a coordinator: its stations. Of a station: its coordinator.
    stations : mapping
        Name -> public identity of all stations, as a station was told them.
    retired : tuple of (str, str)
        Public identities that were replaced or revoked and may not come back, in hex, and the name they had.
    """

    me: TrustStoreEntry
    current: str
    pending: str = ""
    previous: str = ""
    edition: int = 0
    authority: bytes = field(default=b"", repr=False)
    hosts: tuple[str, ...] = ()
    entries: tuple[TrustStoreEntry, ...] = ()
    stations: Mapping[str, bytes] = field(default_factory=dict)
    retired: tuple[tuple[str, str], ...] = ()

    def entry(self, name: str) -> TrustStoreEntry | None:
        """Return the line of a name, if it has one."""
        return next((entry for entry in self.entries if entry.public_identity.name == name), None)

    def with_entry(self, entry: TrustStoreEntry) -> TrustStore:
        """Return the trust store with a line added, or put in the place of the line of that name."""
        kept = [entry if old.public_identity.name == entry.public_identity.name else old for old in self.entries]
        return replace(self, entries=(*kept, entry) if entry not in kept else tuple(kept))

    def to_json(self) -> dict[str, Any]:
        return {
            "me": self.me.to_json(),
            "current": self.current,
            "pending": self.pending,
            "previous": self.previous,
            "edition": self.edition,
            "hosts": list(self.hosts),
            "entries": [entry.to_json() for entry in self.entries],
            "stations": {name: identity.hex() for name, identity in self.stations.items()},
            "retired": [list(pair) for pair in self.retired],
            "authority": self.authority.decode(),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        return cls(
            TrustStoreEntry.from_json(raw["me"]),
            str(raw["current"]),
            str(raw["pending"]),
            str(raw["previous"]),
            int(raw["edition"]),
            raw["authority"].encode(),
            tuple(map(str, raw["hosts"])),
            tuple(TrustStoreEntry.from_json(entry) for entry in raw["entries"]),
            {str(name): bytes.fromhex(identity) for name, identity in raw["stations"].items()},
            tuple((str(identity), str(name)) for identity, name in raw["retired"]),
        )
