"""The life of keys: request, enrol, welcome, rotate, revoke.

    coordinator  KeyFolder.make(path, "hub", authority=True, hosts=[...])
    station      KeyFolder.make(path, "alpha"); ask(folder)                    -> request
    coordinator  enrol(folder, Request.from_bytes(raw))                        -> welcome
    station      accept(folder, Welcome.from_bytes(raw))

Whoever enrols for the first time compares a fingerprint by telephone; `review` and `review_welcome` say whether that is so,
and refuse what does not fit without changing anything. From then on keys vouch for the keys that replace them: a rotation
is signed by the old identity as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from hedgerow.crypto import certificates
from hedgerow.errors import KeyInvalid, StationUnknown
from hedgerow.wire.envelope import PublicIdentity

from .enrolment_files import MOST_STATIONS, Request, Welcome
from .key_folder import KeyFolder
from .trust_store import KeySet, Private, TrustStoreEntry, fingerprint, issued

Standing = Literal["new", "rotation", "renewal"]
"""What a request is: of a station that is not known; of one that changes its keys; of one that has these keys."""


def ask(folder: KeyFolder, *, now: datetime | None = None) -> bytes:
    """Return a station's request: for the keys that wait for a welcome, if any, else for those in use."""
    if folder.is_authority:
        raise _refusal(f"{folder.name!r} is the authority itself and has nobody to ask", "Requests are made by stations.")
    trust_store = folder.trust_store
    keys, before = folder.private.keys[trust_store.pending or trust_store.current], folder.private.keys[trust_store.current]
    values = {
        "station": folder.name,
        "identity": keys.identity.public,
        "agreement": keys.agreement.public,
        "tls": certificates.request(folder.name, keys.tls),
        "made": _today(now),
    }
    return Request.signed(keys.identity, before.identity if trust_store.pending else None, **values).to_bytes()


def review(folder: KeyFolder, request: Request) -> Standing:
    """Say what a request is, without changing anything.

    A "new" one is to be compared by telephone. A "rotation" is signed by the identity on the roster, a "renewal" brings the
    keys on the roster.

    Raises
    ------
    KeyInvalid (HR-244)
        This folder is no coordinator's; the name belongs to another key; the key belongs to another name, or was revoked
        or replaced; the signing request does not fit.
    """
    if not folder.is_authority:
        raise _refusal(f"{folder.name!r} is a station and enrols no other", "Give the request to the coordinator.")
    trust_store, public_identity = folder.trust_store, request.public_identity
    if public_identity.identity.hex() in dict(trust_store.retired):
        raise _refusal(
            f"{public_identity.name!r} brings a key that was revoked or replaced ({request.fingerprint})",
            "Have the station make new ones: hedgerow keys init, in another folder.",
        )
    taken = {entry.public_identity.identity: entry.public_identity.name for entry in (*trust_store.entries, trust_store.me)}
    if taken.get(public_identity.identity, public_identity.name) != public_identity.name:
        raise _refusal(
            f"the key of {public_identity.name!r} is that of {taken[public_identity.identity]!r}",
            "Every station makes keys of its own.",
        )
    known = trust_store.entry(public_identity.name)
    for name in (trust_store.me.public_identity.name, *(entry.public_identity.name for entry in trust_store.entries)):
        if name.casefold() == public_identity.name.casefold() and (known is None or known.public_identity.name != name):
            raise _refusal(
                f"the name {public_identity.name!r} is taken: {name!r} is on the roster", "Have the station take another name."
            )
    if known is None or known.revoked:
        if known is None and len(trust_store.entries) == MOST_STATIONS:
            raise _refusal(f"the roster is full: {MOST_STATIONS} stations", "Begin another federation.")
        return "new"
    if known.public_identity.identity == public_identity.identity:
        if known.public_identity.agreement != public_identity.agreement:
            raise _refusal(
                f"{public_identity.name!r} brings another agreement key with its old identity",
                "Rotate both: hedgerow keys rotate.",
            )
        return "renewal"
    if request.previous == known.public_identity.identity:
        return "rotation"
    raise _refusal(
        f"the name {public_identity.name!r} belongs to another key: {known.fingerprint}, not {request.fingerprint}",
        "If the station still has its old keys: hedgerow keys rotate, there.\n"
        f"If it lost them: hedgerow keys revoke {folder.path} {public_identity.name} --reason lost, then enrol this request.",
    )


def enrol(folder: KeyFolder, request: Request, *, now: datetime | None = None) -> bytes:
    """Put a station on the roster, or its new keys in the place of the old, and return its welcome.

    Raises
    ------
    KeyInvalid (HR-244)
        As `review`; nothing was changed.
    """
    with folder.changing() as store:
        standing = review(folder, request)
        trust_store, public_identity = folder.trust_store, request.public_identity
        known = trust_store.entry(public_identity.name)
        since = known.since if known is not None and standing == "renewal" else _today(now)
        entry = issued(
            TrustStoreEntry(public_identity, since=since), request.tls, trust_store.authority, folder.private.authority, now=now
        )
        if known is not None and standing == "rotation":
            trust_store = replace(
                trust_store, retired=(*trust_store.retired, (known.public_identity.identity.hex(), public_identity.name))
            )
        store(replace(trust_store.with_entry(entry), edition=trust_store.edition + 1))
    return welcome(folder, public_identity.name, now=now)


def welcome(folder: KeyFolder, name: str, *, now: datetime | None = None) -> bytes:
    """Return the welcome of a station on the roster, as things are now.

    To be sent again when the coordinator's certificate was renewed, or the roster has changed and the stations pin it.

    Raises
    ------
    StationUnknown (HR-613)
        The name is not on the roster, or was taken off it.
    """
    trust_store, private = folder.trust_store, folder.private
    entry = _listed(folder, name)
    stations = {
        other.public_identity.name: other.public_identity.identity for other in trust_store.entries if not other.revoked
    }
    before = private.keys[trust_store.previous].identity if trust_store.previous else None
    values = {
        "edition": trust_store.edition,
        "station": name,
        "identity": entry.public_identity.identity,
        "agreement": entry.public_identity.agreement,
        "certificate": entry.certificate,
        "authority": trust_store.authority,
        "coordinator": trust_store.me.public_identity.name,
        "coordinator_identity": trust_store.me.public_identity.identity,
        "coordinator_agreement": trust_store.me.public_identity.agreement,
        "coordinator_certificate": trust_store.me.public_identity.certificate,
        "stations": list(stations),
        "identities": list(stations.values()),
        "made": _today(now),
    }
    return Welcome.signed(private.keys[trust_store.current].identity, before, **values).to_bytes()


def review_welcome(folder: KeyFolder, enrolment_file: Welcome, *, now: datetime | None = None) -> Literal["new", "known"]:
    """Say whether the coordinator of a welcome is new to this station, or the one whose public identity it has.

    The fingerprint of a "new" one is to be compared by telephone.

    Raises
    ------
    KeyInvalid (HR-244)
        It is for somebody else or for other keys, older than the last one, of another coordinator, or its certificate does
        not fit; nothing was changed.
    """
    trust_store, public_identity = folder.trust_store, enrolment_file.public_identity
    if public_identity.name != folder.name:
        raise _refusal(f"the welcome is for {public_identity.name!r}, and this is {folder.name!r}", "Give it to that station.")
    keys = folder.private.keys[_number(folder, public_identity)]
    certificates.check_issued(enrolment_file.certificate, enrolment_file.authority, public_identity.name, key=keys.tls, now=now)
    coordinator = enrolment_file.coordinator
    if coordinator.identity.hex() in dict(trust_store.retired):
        raise _refusal(
            f"the coordinator {coordinator.name!r} brings a key that was revoked or replaced ({enrolment_file.fingerprint})",
            "Ask it by telephone for a welcome with its new keys.",
        )
    pinned = next((entry for entry in trust_store.entries if not entry.revoked), None)
    if pinned is None:
        return "new"
    if (
        pinned.public_identity.identity not in (coordinator.identity, enrolment_file.previous)
        or pinned.public_identity.name != coordinator.name
    ):
        raise _refusal(
            f"the welcome is of the coordinator {coordinator.name!r} ({enrolment_file.fingerprint}), and this station trusts "
            f"{pinned.public_identity.name!r} ({pinned.fingerprint})",
            "A folder belongs to one coordinator: init another, or revoke the one that is known first.",
        )
    if enrolment_file.edition < trust_store.edition:
        raise _refusal(
            f"the welcome is of edition {enrolment_file.edition}, and this station has {trust_store.edition}",
            "Take the latest one.",
        )
    return "known"


def accept(folder: KeyFolder, enrolment_file: Welcome, *, now: datetime | None = None) -> None:
    """Take a welcome in: certificate, authority, the coordinator's public identity, the stations; drop the replaced keys.

    Raises
    ------
    KeyInvalid (HR-244)
        As `review_welcome`; nothing was changed.
    """
    with folder.changing() as store:
        review_welcome(folder, enrolment_file, now=now)
        trust_store, today = folder.trust_store, _today(now)
        number = _number(folder, enrolment_file.public_identity)
        me = TrustStoreEntry(
            enrolment_file.public_identity,
            enrolment_file.certificate,
            since=today if number == trust_store.pending else trust_store.me.since,
        )
        retired = tuple(
            (entry.public_identity.identity.hex(), entry.public_identity.name)
            for entry in trust_store.entries
            if not entry.revoked and entry.public_identity.identity != enrolment_file.coordinator.identity
        )
        changed = replace(
            trust_store.with_entry(TrustStoreEntry(enrolment_file.coordinator, since=today)),
            me=me,
            current=number,
            pending="" if number == trust_store.pending else trust_store.pending,
            edition=enrolment_file.edition,
            authority=enrolment_file.authority,
            stations=enrolment_file.stations,
            retired=(*trust_store.retired, *retired),
        )
        store(changed)


def rotate(folder: KeyFolder, *, identity: bool = True, hosts: Sequence[str] = (), now: datetime | None = None) -> None:
    """Make new keys.

    A station's wait for a welcome, and the old ones go on until it is in: send what `ask` returns. Where some wait already
    they stay as they are. A coordinator's hold at once: send every station its new `welcome`.

    Parameters
    ----------
    identity : bool
        Of a coordinator: whether to replace identity and agreement key, or the TLS key and its certificate only. With a new
        identity a station takes no part before it has its welcome; with a new certificate it goes on.
    hosts : sequence of str
        Of a coordinator: other names and addresses; those it had by default.
    """
    with folder.changing() as store:
        trust_store, private = folder.trust_store, folder.private
        fresh = KeySet.fresh()
        number = str(1 + max(int(each) for each in private.keys))
        if not folder.is_authority:
            if not trust_store.authority:
                raise _refusal(f"{folder.name!r} was not welcomed yet: there is nothing to replace", "Send its request first.")
            if not trust_store.pending:
                store(replace(trust_store, pending=number), Private({**private.keys, number: fresh}, b""))
            return
        old = private.keys[trust_store.current]
        keys = fresh if identity else KeySet(old.identity, old.agreement, fresh.tls)
        me = TrustStoreEntry(keys.public_identity(folder.name), since=_today(now) if identity else trust_store.me.since)
        hosts = tuple(dict.fromkeys(hosts)) or trust_store.hosts
        asked = certificates.request(folder.name, keys.tls)
        me = issued(me, asked, trust_store.authority, private.authority, hosts=hosts, now=now)
        changed = replace(trust_store, me=me, current=number, hosts=hosts, edition=trust_store.edition + 1)
        if identity:
            changed = replace(
                changed, previous=trust_store.current, retired=(*trust_store.retired, (old.identity.public.hex(), folder.name))
            )
        store(changed, Private({**private.keys, number: keys}, private.authority))


def revoke(folder: KeyFolder, name: str, reason: str, *, now: datetime | None = None) -> None:
    """Take a public identity off the roster, at once and for good: its letters and connections are refused.

    Raises
    ------
    StationUnknown (HR-613)
        The name is not on the roster, or was taken off it before.
    """
    with folder.changing() as store:
        entry, trust_store = _listed(folder, name), folder.trust_store
        gone = replace(entry, revoked=_today(now), reason=reason)
        stations = {other: identity for other, identity in trust_store.stations.items() if other != name}
        changed = replace(
            trust_store.with_entry(gone),
            retired=(*trust_store.retired, (entry.public_identity.identity.hex(), name)),
            stations=stations,
        )
        store(replace(changed, edition=trust_store.edition + 1) if folder.is_authority else changed)


def _listed(folder: KeyFolder, name: str) -> TrustStoreEntry:
    """The line of a name that is trusted now."""
    entry = folder.trust_store.entry(name)
    if entry is None or entry.revoked:
        since = f", it was taken off on {entry.revoked}" if entry is not None else ""
        raise StationUnknown(
            f"{name!r} is not on the roster of {folder.name!r}{since}.",
            remedy=f"On it: {', '.join(sorted(folder.public_identities)) or 'nobody'}. See hedgerow keys list {folder.path}",
        )
    return entry


def _number(folder: KeyFolder, public_identity: PublicIdentity) -> str:
    """Which of a station's key sets a public identity is of: the one in use, or the one that waits."""
    trust_store, held = folder.trust_store, folder.private.keys
    for number in (trust_store.pending, trust_store.current):
        if number and (held[number].identity.public, held[number].agreement.public) == (
            public_identity.identity,
            public_identity.agreement,
        ):
            return number
    raise _refusal(
        "the welcome is for keys that this folder does not hold"
        f" ({fingerprint(public_identity.name, public_identity.identity)})",
        "Enrol the welcome that answers this folder's request, or send the request again.",
    )


def _today(now: datetime | None) -> str:
    return f"{now or datetime.now(UTC):%Y-%m-%d}"


def _refusal(what: str, remedy: str) -> KeyInvalid:
    return KeyInvalid(f"{what}.", remedy=remedy, asked=False)
