"""A coordinator and stations with keys, for tests of letters."""

from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.network.identity import enrolment
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, disclose, enclose


def key_material(name, identity=None, agreement=None):
    identity, agreement = identity or Identity.fresh(), agreement or AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


HUB, ALPHA, BETA = key_material("hub"), key_material("alpha"), key_material("beta")
PUBLIC_IDENTITIES = {each.public_identity.name: each.public_identity for each in (HUB, ALPHA, BETA)}
STUDY = bytes(range(16))


def enrolled(hub, station):
    """A station whose request was enrolled and whose welcome is in."""
    enrolment_file = enrolment.enrol(hub, Request.from_bytes(enrolment.ask(station)))
    enrolment.accept(station, Welcome.from_bytes(enrolment_file))
    return station


def talks(hub, station):
    """Whether a letter goes from the coordinator to the station and back."""
    raw = enclose(hub.key_material, hub.public_identities[station.name], "hello", [b"who?"])
    asked = disclose(station.key_material, station.public_identities, raw)
    answer = enclose(station.key_material, station.public_identities["hub"], "hello", [b"me"], answers=asked.digest)
    return disclose(hub.key_material, hub.public_identities, answer).parts == (b"me",)


def unchanged(folder):
    """Every byte of a folder, to compare."""
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.name != "lock"}
