"""A coordinator and stations with keys, for tests of letters."""

from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.wire import enrolment
from hedgerow.wire.envelope import Card, Seat, disclose, enclose
from hedgerow.wire.papers import Request, Welcome


def seat(name, identity=None, agreement=None):
    identity, agreement = identity or Identity.fresh(), agreement or AgreementKey.fresh()
    return Seat(Card(name, identity.public, agreement.public), identity, agreement)


HUB, ALPHA, BETA = seat("hub"), seat("alpha"), seat("beta")
CARDS = {each.card.name: each.card for each in (HUB, ALPHA, BETA)}
STUDY = bytes(range(16))


def enrolled(hub, station):
    """A station whose request was enrolled and whose welcome is in."""
    paper = enrolment.enrol(hub, Request.from_bytes(enrolment.ask(station)))
    enrolment.accept(station, Welcome.from_bytes(paper))
    return station


def talks(hub, station):
    """Whether a letter goes from the coordinator to the station and back."""
    raw = enclose(hub.seat, hub.cards[station.name], "hello", [b"who?"])
    asked = disclose(station.seat, station.cards, raw)
    answer = enclose(station.seat, station.cards["hub"], "hello", [b"me"], answers=asked.digest)
    return disclose(hub.seat, hub.cards, answer).parts == (b"me",)


def unchanged(folder):
    """Every byte of a folder, to compare."""
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.name != "lock"}
