"""Enrolment files: what a station asks, and what a coordinator answers, as files that travel by mail.

    request   station -> coordinator   name, public keys, signing request for a TLS certificate
    welcome   coordinator -> station   certificate, authority, coordinator's and stations' public identities

An enrolment file is JSON, to be read by whoever sends it on. It holds nothing secret. It is signed by the identity that it
brings; after a rotation also by the identity that was known before, so that no telephone is needed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

from hedgerow.crypto import certificates
from hedgerow.crypto.keys import Identity, Roster, verify
from hedgerow.crypto.messages import MessageForm, Octets, Several, Whole, Words, digest, exactly
from hedgerow.errors import KeyInvalid, MessageRefused
from hedgerow.wire.envelope import PublicIdentity

from .trust_store import fingerprint

MOST_STATIONS = 10_000
_KEY, _MAYBE_KEY, _PEM, _NAME, _DAY = exactly(32), Octets(0, 32), Octets(1, 1 << 14), Words(63), Words(32)

REQUEST = MessageForm("request", station=_NAME, identity=_KEY, agreement=_KEY, tls=_PEM, previous=_MAYBE_KEY, made=_DAY)

WELCOME = MessageForm(
    "welcome",
    edition=Whole(1, 2**53),
    station=_NAME,
    identity=_KEY,
    agreement=_KEY,
    certificate=_PEM,
    authority=_PEM,
    coordinator=_NAME,
    coordinator_identity=_KEY,
    coordinator_agreement=_KEY,
    coordinator_certificate=_KEY,
    previous=_MAYBE_KEY,
    stations=Several(_NAME, MOST_STATIONS),
    identities=Several(_KEY, MOST_STATIONS),
    made=_DAY,
)

MOST_BYTES = 3 * WELCOME.most
"""Of an enrolment file in hexadecimal."""

READABLE = {"tls", "certificate", "authority"}
"""Values that are text already: PEM."""


@dataclass(frozen=True)
class EnrolmentFile:
    """A signed form. `previous` is the identity that signed as well, or empty."""

    values: Mapping[str, Any]
    signatures: tuple[bytes, ...]

    form: ClassVar[MessageForm]
    signer: ClassVar[str]

    @classmethod
    def signed(cls, identity: Identity, before: Identity | None = None, /, **values: Any) -> Self:
        """Return the enrolment file, signed by the identity that it brings and the one that was known before."""
        values["previous"] = before.public if before else b""
        statement = digest("paper", cls.form.pack(**values))
        return cls(values, tuple(each.sign(statement) for each in (identity, before) if each))

    def to_bytes(self) -> bytes:
        """Return the enrolment file as a file."""
        shown = {field: _shown(field, value) for field, value in self.values.items()}
        told = {"hedgerow": self.form.name, **shown, "signatures": [signature.hex() for signature in self.signatures]}
        return json.dumps(told, indent=1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Read an enrolment file, and check its signatures.

        Raises
        ------
        KeyInvalid (HR-244)
            It is not such an enrolment file, or not signed by the keys that it brings.
        """
        name = cls.form.name
        try:
            if len(raw) > MOST_BYTES:
                raise ValueError("too long")
            told = json.loads(raw)
            if told.pop("hedgerow") != name:
                raise ValueError("another enrolment file")
            signatures = tuple(map(bytes.fromhex, told.pop("signatures")))
            values = {field: _read(cls.form.kinds[field], field, value) for field, value in told.items()}
            statement = digest("paper", cls.form.pack(**values))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MessageRefused):
            _refuse(f"the file is not a {name}, or was damaged on its way", f"Ask for the {name} again.")
        signers = [values[cls.signer], *([values["previous"]] if values["previous"] else [])]
        if len(signers) != len(signatures):
            _refuse(f"a {name} of {len(signers)} identities has {len(signatures)} signatures", f"Ask for the {name} again.")
        enrolment_file = cls(values, signatures)
        try:
            for signer, signature in zip(signers, signatures, strict=True):
                verify(signer, signature, statement)
            enrolment_file.check()
        except KeyInvalid as error:
            _refuse(
                f"the {name} of {values['station']!r} does not hold: {error.reason.rstrip('.')}", f"Ask for the {name} again."
            )
        return enrolment_file

    def check(self) -> None:
        """Refuse what no signature makes sound: raise KeyInvalid (HR-244)."""

    @property
    def previous(self) -> bytes:
        """The identity that was known before and signed as well, or nothing."""
        return bytes(self.values["previous"])


class Request(EnrolmentFile):
    """What a station asks: to be put on the roster under a name."""

    form, signer = REQUEST, "identity"

    def check(self) -> None:
        certificates.check_request(self.tls, self.public_identity.name)

    @property
    def public_identity(self) -> PublicIdentity:
        """The public identity that it asks for; without a certificate."""
        return PublicIdentity(self.values["station"], self.values["identity"], self.values["agreement"])

    @property
    def tls(self) -> bytes:
        """The signing request, PEM."""
        return bytes(self.values["tls"])

    @property
    def fingerprint(self) -> str:
        """What the two people compare."""
        return fingerprint(self.values["station"], self.values["identity"])


class Welcome(EnrolmentFile):
    """What a coordinator answers."""

    form, signer = WELCOME, "coordinator_identity"

    def check(self) -> None:
        if len(self.values["stations"]) != len(self.values["identities"]):
            _refuse("it lists stations without identities", "Ask for the welcome again.")
        Roster(self.stations)
        certificates.name_of(self.authority)
        if self.public_identity.name == self.coordinator.name:
            _refuse(f"station and coordinator are both {self.public_identity.name!r}", "Ask for the welcome again.")

    @property
    def public_identity(self) -> PublicIdentity:
        """The public identity of the station that is welcome."""
        shown = certificates.fingerprint(self.certificate)
        return PublicIdentity(self.values["station"], self.values["identity"], self.values["agreement"], shown)

    @property
    def coordinator(self) -> PublicIdentity:
        """The public identity of the coordinator."""
        keys = ("identity", "agreement", "certificate")
        return PublicIdentity(self.values["coordinator"], *(self.values[f"coordinator_{key}"] for key in keys))

    @property
    def certificate(self) -> bytes:
        """The station's certificate, PEM."""
        return bytes(self.values["certificate"])

    @property
    def authority(self) -> bytes:
        """The authority's certificate, PEM."""
        return bytes(self.values["authority"])

    @property
    def edition(self) -> int:
        """Of the coordinator's roster."""
        return int(self.values["edition"])

    @property
    def stations(self) -> dict[str, bytes]:
        """Name -> public identity of every station on the roster."""
        return dict(zip(self.values["stations"], self.values["identities"], strict=True))

    @property
    def fingerprint(self) -> str:
        """Of the coordinator: what the two people compare."""
        return fingerprint(self.values["coordinator"], self.values["coordinator_identity"])


def _shown(field: str, value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode() if field in READABLE else value.hex()
    return [item.hex() if isinstance(item, bytes) else item for item in value] if isinstance(value, list) else value


def _read(kind: object, field: str, value: Any) -> Any:
    """A value of a form, out of JSON. What is not of its kind is left as it is, for the form to refuse."""
    if field in READABLE:
        return value.encode("ascii")
    if isinstance(kind, Octets):
        return bytes.fromhex(value)
    return [bytes.fromhex(item) for item in value] if isinstance(kind, Several) and isinstance(kind.of, Octets) else value


def _refuse(what: str, remedy: str) -> NoReturn:
    raise KeyInvalid(f"{what}.", remedy=remedy, asked=False)
