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

from .book import Entry, KeySet, Private, fingerprint, issued
from .envelope import Card
from .folder import KeyFolder
from .papers import MOST_STATIONS, Request, Welcome

Standing = Literal["new", "rotation", "renewal"]
"""What a request is: of a station that is not known; of one that changes its keys; of one that has these keys."""


def ask(folder: KeyFolder, *, now: datetime | None = None) -> bytes:
    """Return a station's request: for the keys that wait for a welcome, if any, else for those in use."""
    if folder.is_authority:
        raise _refusal(f"{folder.name!r} is the authority itself and has nobody to ask", "Requests are made by stations.")
    book = folder.book
    keys, before = folder.private.keys[book.pending or book.current], folder.private.keys[book.current]
    values = {
        "station": folder.name,
        "identity": keys.identity.public,
        "agreement": keys.agreement.public,
        "tls": certificates.request(folder.name, keys.tls),
        "made": _today(now),
    }
    return Request.signed(keys.identity, before.identity if book.pending else None, **values).to_bytes()


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
    book, card = folder.book, request.card
    if card.identity.hex() in dict(book.retired):
        raise _refusal(
            f"{card.name!r} brings a key that was revoked or replaced ({request.fingerprint})",
            "Have the station make new ones: hedgerow keys init, in another folder.",
        )
    taken = {entry.card.identity: entry.card.name for entry in (*book.entries, book.me)}
    if taken.get(card.identity, card.name) != card.name:
        raise _refusal(f"the key of {card.name!r} is that of {taken[card.identity]!r}", "Every station makes keys of its own.")
    known = book.entry(card.name)
    for name in (book.me.card.name, *(entry.card.name for entry in book.entries)):
        if name.casefold() == card.name.casefold() and (known is None or known.card.name != name):
            raise _refusal(f"the name {card.name!r} is taken: {name!r} is on the roster", "Have the station take another name.")
    if known is None or known.revoked:
        if known is None and len(book.entries) == MOST_STATIONS:
            raise _refusal(f"the roster is full: {MOST_STATIONS} stations", "Begin another federation.")
        return "new"
    if known.card.identity == card.identity:
        if known.card.agreement != card.agreement:
            raise _refusal(
                f"{card.name!r} brings another agreement key with its old identity", "Rotate both: hedgerow keys rotate."
            )
        return "renewal"
    if request.previous == known.card.identity:
        return "rotation"
    raise _refusal(
        f"the name {card.name!r} belongs to another key: {known.fingerprint}, not {request.fingerprint}",
        "If the station still has its old keys: hedgerow keys rotate, there.\n"
        f"If it lost them: hedgerow keys revoke {folder.path} {card.name} --reason lost, then enrol this request.",
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
        book, card = folder.book, request.card
        known = book.entry(card.name)
        since = known.since if known is not None and standing == "renewal" else _today(now)
        entry = issued(Entry(card, since=since), request.tls, book.authority, folder.private.authority, now=now)
        if known is not None and standing == "rotation":
            book = replace(book, retired=(*book.retired, (known.card.identity.hex(), card.name)))
        store(replace(book.with_entry(entry), edition=book.edition + 1))
    return welcome(folder, card.name, now=now)


def welcome(folder: KeyFolder, name: str, *, now: datetime | None = None) -> bytes:
    """Return the welcome of a station on the roster, as things are now.

    To be sent again when the coordinator's certificate was renewed, or the roster has changed and the stations pin it.

    Raises
    ------
    StationUnknown (HR-613)
        The name is not on the roster, or was taken off it.
    """
    book, private = folder.book, folder.private
    entry = _listed(folder, name)
    stations = {other.card.name: other.card.identity for other in book.entries if not other.revoked}
    before = private.keys[book.previous].identity if book.previous else None
    values = {
        "edition": book.edition,
        "station": name,
        "identity": entry.card.identity,
        "agreement": entry.card.agreement,
        "certificate": entry.certificate,
        "authority": book.authority,
        "coordinator": book.me.card.name,
        "coordinator_identity": book.me.card.identity,
        "coordinator_agreement": book.me.card.agreement,
        "coordinator_certificate": book.me.card.certificate,
        "stations": list(stations),
        "identities": list(stations.values()),
        "made": _today(now),
    }
    return Welcome.signed(private.keys[book.current].identity, before, **values).to_bytes()


def review_welcome(folder: KeyFolder, paper: Welcome, *, now: datetime | None = None) -> Literal["new", "known"]:
    """Say whether the coordinator of a welcome is new to this station, or the one whose card it has.

    The fingerprint of a "new" one is to be compared by telephone.

    Raises
    ------
    KeyInvalid (HR-244)
        It is for somebody else or for other keys, older than the last one, of another coordinator, or its certificate does
        not fit; nothing was changed.
    """
    book, card = folder.book, paper.card
    if card.name != folder.name:
        raise _refusal(f"the welcome is for {card.name!r}, and this is {folder.name!r}", "Give it to that station.")
    keys = folder.private.keys[_number(folder, card)]
    certificates.check_issued(paper.certificate, paper.authority, card.name, key=keys.tls, now=now)
    coordinator = paper.coordinator
    if coordinator.identity.hex() in dict(book.retired):
        raise _refusal(
            f"the coordinator {coordinator.name!r} brings a key that was revoked or replaced ({paper.fingerprint})",
            "Ask it by telephone for a welcome with its new keys.",
        )
    pinned = next((entry for entry in book.entries if not entry.revoked), None)
    if pinned is None:
        return "new"
    if pinned.card.identity not in (coordinator.identity, paper.previous) or pinned.card.name != coordinator.name:
        raise _refusal(
            f"the welcome is of the coordinator {coordinator.name!r} ({paper.fingerprint}), and this station trusts "
            f"{pinned.card.name!r} ({pinned.fingerprint})",
            "A folder belongs to one coordinator: init another, or revoke the one that is known first.",
        )
    if paper.edition < book.edition:
        raise _refusal(
            f"the welcome is of edition {paper.edition}, and this station has {book.edition}", "Take the latest one."
        )
    return "known"


def accept(folder: KeyFolder, paper: Welcome, *, now: datetime | None = None) -> None:
    """Take a welcome in: certificate, authority, the coordinator's card and the stations; drop the keys that it replaces.

    Raises
    ------
    KeyInvalid (HR-244)
        As `review_welcome`; nothing was changed.
    """
    with folder.changing() as store:
        review_welcome(folder, paper, now=now)
        book, today = folder.book, _today(now)
        number = _number(folder, paper.card)
        me = Entry(paper.card, paper.certificate, since=today if number == book.pending else book.me.since)
        retired = tuple(
            (entry.card.identity.hex(), entry.card.name)
            for entry in book.entries
            if not entry.revoked and entry.card.identity != paper.coordinator.identity
        )
        changed = replace(
            book.with_entry(Entry(paper.coordinator, since=today)),
            me=me,
            current=number,
            pending="" if number == book.pending else book.pending,
            edition=paper.edition,
            authority=paper.authority,
            stations=paper.stations,
            retired=(*book.retired, *retired),
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
        book, private = folder.book, folder.private
        fresh = KeySet.fresh()
        number = str(1 + max(int(each) for each in private.keys))
        if not folder.is_authority:
            if not book.authority:
                raise _refusal(f"{folder.name!r} was not welcomed yet: there is nothing to replace", "Send its request first.")
            if not book.pending:
                store(replace(book, pending=number), Private({**private.keys, number: fresh}, b""))
            return
        old = private.keys[book.current]
        keys = fresh if identity else KeySet(old.identity, old.agreement, fresh.tls)
        me = Entry(keys.card(folder.name), since=_today(now) if identity else book.me.since)
        hosts = tuple(dict.fromkeys(hosts)) or book.hosts
        asked = certificates.request(folder.name, keys.tls)
        me = issued(me, asked, book.authority, private.authority, hosts=hosts, now=now)
        changed = replace(book, me=me, current=number, hosts=hosts, edition=book.edition + 1)
        if identity:
            changed = replace(changed, previous=book.current, retired=(*book.retired, (old.identity.public.hex(), folder.name)))
        store(changed, Private({**private.keys, number: keys}, private.authority))


def revoke(folder: KeyFolder, name: str, reason: str, *, now: datetime | None = None) -> None:
    """Take a card off the roster, at once and for good: its letters and connections are refused.

    Raises
    ------
    StationUnknown (HR-613)
        The name is not on the roster, or was taken off it before.
    """
    with folder.changing() as store:
        entry, book = _listed(folder, name), folder.book
        gone = replace(entry, revoked=_today(now), reason=reason)
        stations = {other: identity for other, identity in book.stations.items() if other != name}
        changed = replace(book.with_entry(gone), retired=(*book.retired, (entry.card.identity.hex(), name)), stations=stations)
        store(replace(changed, edition=book.edition + 1) if folder.is_authority else changed)


def _listed(folder: KeyFolder, name: str) -> Entry:
    """The line of a name that is trusted now."""
    entry = folder.book.entry(name)
    if entry is None or entry.revoked:
        since = f", it was taken off on {entry.revoked}" if entry is not None else ""
        raise StationUnknown(
            f"{name!r} is not on the roster of {folder.name!r}{since}.",
            remedy=f"On it: {', '.join(sorted(folder.cards)) or 'nobody'}. See hedgerow keys list {folder.path}",
        )
    return entry


def _number(folder: KeyFolder, card: Card) -> str:
    """Which of a station's key sets a card is of: the one in use, or the one that waits."""
    book, held = folder.book, folder.private.keys
    for number in (book.pending, book.current):
        if number and (held[number].identity.public, held[number].agreement.public) == (card.identity, card.agreement):
            return number
    raise _refusal(
        f"the welcome is for keys that this folder does not hold ({fingerprint(card.name, card.identity)})",
        "Enrol the welcome that answers this folder's request, or send the request again.",
    )


def _today(now: datetime | None) -> str:
    return f"{now or datetime.now(UTC):%Y-%m-%d}"


def _refusal(what: str, remedy: str) -> KeyInvalid:
    return KeyInvalid(f"{what}.", remedy=remedy, asked=False)
