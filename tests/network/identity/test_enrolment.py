"""The life of keys: request, welcome, rotation, revocation; and what is refused of each."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from holders import enrolled, talks, unchanged

from hedgerow.crypto import certificates
from hedgerow.crypto.keys import Identity
from hedgerow.errors import HedgerowError, KeyInvalid
from hedgerow.network.identity import enrolment
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.identity.trust_store import fingerprint
from hedgerow.wire.envelope import disclose, enclose

LATER = datetime.now(UTC) + timedelta(days=500)


def test_a_request_says_whether_it_is_new(hub, alpha):
    enrolment_file = Request.from_bytes(enrolment.ask(alpha))
    assert (
        enrolment_file.fingerprint
        == fingerprint("alpha", alpha.key_material.public_identity.identity)
        == alpha.trust_store.me.fingerprint
    )
    assert enrolment.review(hub, enrolment_file) == "new"
    enrolled(hub, alpha)
    assert enrolment.review(hub, enrolment_file) == "renewal"
    since = hub.trust_store.entry("alpha").since
    enrolment.enrol(hub, enrolment_file)
    assert hub.trust_store.entry("alpha").since == since
    assert hub.trust_store.edition == 2


@pytest.mark.parametrize("field", ["station", "identity", "agreement", "tls", "previous", "made"])
def test_a_request_that_was_changed_on_its_way_is_refused(alpha, beta, field):
    told, other = (json.loads(enrolment.ask(folder)) for folder in (alpha, beta))
    told[field] = other[field] if other[field] != told[field] else "00" * 32
    with pytest.raises(KeyInvalid):
        Request.from_bytes(json.dumps(told).encode())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-20],
        lambda raw: b"",
        lambda raw: b"[" * 100_000,
        lambda raw: raw.replace(b'"request"', b'"welcome"'),
        lambda raw: raw.replace(b'"made"', b'"more": 1, "made"'),
        lambda raw: raw.replace(b'"signatures": [', b'"signatures": ["00", '),
        lambda raw: raw.replace(b'"\n ]\n}', b'", "00"\n ]\n}'),
        lambda raw: raw.replace(b'"previous": ""', b'"previous": 3'),
        lambda raw: bytes(100_000_000),
    ],
)
def test_what_is_no_request_is_refused(alpha, spoil):
    with pytest.raises(KeyInvalid, match="request"):
        Request.from_bytes(spoil(enrolment.ask(alpha)))


def test_a_name_that_is_taken_is_refused_and_nothing_changes(hub, alpha, tmp_path):
    enrolled(hub, alpha)
    before = unchanged(hub)
    for name, why in (("alpha", "another key"), ("Alpha", "taken"), ("hub", "taken")):
        other = KeyFolder.make(tmp_path / f"other-{name}", name)
        with pytest.raises(KeyInvalid, match=why):
            enrolment.enrol(hub, Request.from_bytes(enrolment.ask(other)))
    assert unchanged(hub) == before
    assert talks(hub, alpha)


def test_a_key_of_somebody_else_is_refused(hub, alpha):
    enrolled(hub, alpha)
    told = {**Request.from_bytes(enrolment.ask(alpha)).values, "station": "gamma"}
    told["tls"] = certificates.request("gamma", certificates.tls_key())
    identity = alpha.key_material.identity
    del told["previous"]
    with pytest.raises(KeyInvalid, match="that of 'alpha'"):
        enrolment.review(hub, Request.from_bytes(Request.signed(identity, **told).to_bytes()))
    told = {**told, "station": "alpha", "agreement": bytes(range(32))}
    with pytest.raises(KeyInvalid, match="for 'gamma'"):
        enrolment.review(hub, Request.from_bytes(Request.signed(identity, **told).to_bytes()))
    told["tls"] = certificates.request("alpha", certificates.tls_key())
    with pytest.raises(KeyInvalid, match="another agreement key"):
        enrolment.review(hub, Request.from_bytes(Request.signed(identity, **told).to_bytes()))


def test_a_roster_has_an_end(hub, alpha, beta, monkeypatch):
    monkeypatch.setattr(enrolment, "MOST_STATIONS", 1)
    enrolled(hub, alpha)
    with pytest.raises(KeyInvalid, match="full"):
        enrolled(hub, beta)
    enrolled(hub, alpha)


def test_a_station_enrols_nobody_and_a_coordinator_asks_nobody(hub, alpha, beta):
    with pytest.raises(KeyInvalid, match="enrols no other"):
        enrolment.enrol(alpha, Request.from_bytes(enrolment.ask(beta)))
    with pytest.raises(KeyInvalid, match="nobody to ask"):
        enrolment.ask(hub)


def test_a_welcome_for_another_station_or_other_keys_is_refused(hub, alpha, beta, tmp_path):
    welcome = Welcome.from_bytes(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    twin = KeyFolder.make(tmp_path / "twin", "alpha")
    before = unchanged(beta), unchanged(twin)
    with pytest.raises(KeyInvalid, match="for 'alpha', and this is 'beta'"):
        enrolment.accept(beta, welcome)
    with pytest.raises(KeyInvalid, match="keys that this folder does not hold"):
        enrolment.accept(twin, welcome)
    assert (unchanged(beta), unchanged(twin)) == before


def test_a_welcome_of_another_coordinator_is_refused(hub, alpha, tmp_path):
    other = KeyFolder.make(tmp_path / "other", "hub", authority=True)
    enrolled(hub, alpha)
    welcome = Welcome.from_bytes(enrolment.enrol(other, Request.from_bytes(enrolment.ask(alpha))))
    with pytest.raises(KeyInvalid, match="this station trusts 'hub'"):
        enrolment.accept(alpha, welcome)
    assert talks(hub, alpha)


def test_a_welcome_whose_certificate_does_not_fit_is_refused(hub, alpha):
    enrolment_file = Welcome.from_bytes(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    told = {name: value for name, value in enrolment_file.values.items() if name != "previous"}
    other = certificates.authority("hub")
    wrong = {
        "not issued by": {"authority": other[0]},
        "another private key": {
            "certificate": certificates.issue(
                hub.trust_store.authority, hub.private.authority, certificates.request("alpha", certificates.tls_key()), "alpha"
            )
        },
        "not for 'alpha'": {"certificate": hub.tls.certificate},
    }
    for why, changes in wrong.items():
        forged = Welcome.signed(hub.key_material.identity, **{**told, **changes})
        with pytest.raises(KeyInvalid, match=why):
            enrolment.accept(alpha, Welcome.from_bytes(forged.to_bytes()))
    with pytest.raises(KeyInvalid, match="valid from"):
        enrolment.accept(alpha, enrolment_file, now=LATER)
    assert dict(alpha.public_identities) == {}


def test_a_welcome_of_an_earlier_edition_is_refused(hub, alpha, beta):
    first = Welcome.from_bytes(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    enrolment.accept(alpha, first)
    enrolled(hub, beta)
    enrolment.accept(alpha, Welcome.from_bytes(enrolment.welcome(hub, "alpha")))
    assert set(alpha.roster) == {"alpha", "beta"}
    with pytest.raises(KeyInvalid, match="edition 1"):
        enrolment.accept(alpha, first)


def test_a_rotation_goes_on_with_the_old_keys_until_the_welcome_is_in(hub, alpha):
    enrolled(hub, alpha)
    old = alpha.key_material
    enrolment.rotate(alpha)
    assert alpha.key_material.public_identity == old.public_identity
    assert talks(hub, alpha)
    request = Request.from_bytes(enrolment.ask(alpha))
    assert enrolment.review(hub, request) == "rotation"
    enrolment.rotate(alpha)
    assert (
        Request.from_bytes(enrolment.ask(alpha)).public_identity == request.public_identity
    )  # asked twice: the same keys wait
    welcome = Welcome.from_bytes(enrolment.enrol(hub, request))
    enrolment.accept(alpha, welcome)
    assert alpha.key_material.public_identity == replace(
        request.public_identity, certificate=welcome.public_identity.certificate
    )
    assert alpha.key_material.public_identity.identity != old.public_identity.identity
    assert talks(hub, alpha)
    assert len(alpha.private.keys) == 1  # the old ones are dropped
    with pytest.raises(KeyInvalid):
        disclose(old, alpha.public_identities, enclose(hub.key_material, hub.public_identities["alpha"], "ask", [b"x"]))
    with pytest.raises(KeyInvalid):
        disclose(hub.key_material, hub.public_identities, enclose(old, hub.key_material.public_identity, "answer", [b"x"]))


def test_a_rotation_that_the_old_keys_did_not_sign_is_refused(hub, alpha, tmp_path):
    enrolled(hub, alpha)
    thief = KeyFolder.make(tmp_path / "thief", "alpha")
    values = {name: value for name, value in Request.from_bytes(enrolment.ask(thief)).values.items() if name != "previous"}
    mine = thief.key_material.identity
    claimed = Request.signed(mine, Identity.fresh(), **values)
    with pytest.raises(KeyInvalid, match="another key"):
        enrolment.review(hub, Request.from_bytes(claimed.to_bytes()))
    told = json.loads(claimed.to_bytes())
    told["previous"] = alpha.key_material.public_identity.identity.hex()
    with pytest.raises(KeyInvalid, match="signature"):
        Request.from_bytes(json.dumps(told).encode())


def test_keys_that_were_replaced_do_not_come_back(hub, alpha):
    enrolled(hub, alpha)
    old = Request.from_bytes(enrolment.ask(alpha))
    enrolment.rotate(alpha)
    enrolled(hub, alpha)
    with pytest.raises(KeyInvalid, match="revoked or replaced"):
        enrolment.enrol(hub, old)
    enrolment.revoke(hub, "alpha", "left")
    with pytest.raises(KeyInvalid, match="revoked or replaced"):
        enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha)))


def test_a_coordinator_renews_its_certificate_and_its_stations_go_on(hub, alpha):
    enrolled(hub, alpha)
    old = hub.tls
    enrolment.rotate(hub, identity=False, hosts=["new.example.org"])
    assert hub.tls.certificate != old.certificate
    assert hub.tls.key != old.key
    assert certificates.hosts_of(hub.tls.certificate) == ("hub", "new.example.org")
    assert talks(hub, alpha)
    welcome = Welcome.from_bytes(enrolment.welcome(hub, "alpha"))
    assert enrolment.review_welcome(alpha, welcome) == "known"
    enrolment.accept(alpha, welcome)
    assert alpha.public_identities["hub"].certificate == certificates.fingerprint(hub.tls.certificate)


def test_a_coordinator_that_changes_its_identity_vouches_for_the_new_one(hub, alpha):
    enrolled(hub, alpha)
    first = enrolment.welcome(hub, "alpha")
    enrolment.rotate(hub)
    with pytest.raises(KeyInvalid):
        talks(hub, alpha)
    welcome = Welcome.from_bytes(enrolment.welcome(hub, "alpha"))
    assert enrolment.review_welcome(alpha, welcome) == "known"
    enrolment.accept(alpha, welcome)
    assert talks(hub, alpha)
    with pytest.raises(KeyInvalid, match="revoked or replaced"):
        enrolment.accept(alpha, Welcome.from_bytes(first))


def test_a_station_that_lost_its_keys_comes_back_with_new_ones(hub, alpha, tmp_path):
    enrolled(hub, alpha)
    enrolment.revoke(hub, "alpha", "lost")
    again = KeyFolder.make(tmp_path / "again", "alpha")
    assert enrolment.review(hub, Request.from_bytes(enrolment.ask(again))) == "new"
    enrolled(hub, again)
    assert talks(hub, again)
    assert hub.public_identities["alpha"] == again.key_material.public_identity


def test_a_station_can_revoke_its_coordinator_and_join_another(hub, alpha, tmp_path):
    enrolled(hub, alpha)
    enrolment.revoke(alpha, "hub", "stolen")
    assert dict(alpha.public_identities) == {}
    with pytest.raises(KeyInvalid, match="revoked or replaced"):
        enrolment.accept(alpha, Welcome.from_bytes(enrolment.welcome(hub, "alpha")))
    other = KeyFolder.make(tmp_path / "other", "hub", authority=True)
    enrolment_file = Welcome.from_bytes(enrolment.enrol(other, Request.from_bytes(enrolment.ask(alpha))))
    assert enrolment.review_welcome(alpha, enrolment_file) == "new"
    enrolment.accept(alpha, enrolment_file)
    assert talks(other, alpha)


def test_papers_are_read_by_people(hub, alpha):
    request = json.loads(enrolment.ask(alpha))
    assert request["station"] == "alpha"
    assert "BEGIN CERTIFICATE REQUEST" in request["tls"]
    welcome = json.loads(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    assert (welcome["coordinator"], welcome["stations"]) == ("hub", ["alpha"])
    roster = json.loads((hub.path / "roster.json").read_text())
    assert {"name", "identity", "agreement", "certificate", "since", "revoked"} <= set(roster["entries"][0])


def test_every_refusal_says_what_to_do(hub, alpha):
    with pytest.raises(HedgerowError) as caught:
        enrolment.enrol(alpha, Request.from_bytes(enrolment.ask(alpha)))
    assert caught.value.remedy
    assert not caught.value.asked


@pytest.mark.parametrize(
    "lists",
    [{"stations": []}, {"coordinator": "alpha"}, {"identities": []}, {"stations": ["a", "b"], "identities": [bytes(32)] * 2}],
)
def test_a_welcome_with_a_roster_that_cannot_be_is_refused(hub, alpha, lists):
    enrolment_file = Welcome.from_bytes(enrolment.enrol(hub, Request.from_bytes(enrolment.ask(alpha))))
    told = {name: value for name, value in enrolment_file.values.items() if name != "previous"}
    forged = Welcome.signed(hub.key_material.identity, **{**told, **lists})
    with pytest.raises(KeyInvalid, match="welcome"):
        Welcome.from_bytes(forged.to_bytes())


def test_papers_that_were_spoilt_anywhere_are_refused(hub, alpha):
    source = random.Random(3)
    request = enrolment.ask(alpha)
    for kind, raw in ((Request, request), (Welcome, enrolment.enrol(hub, Request.from_bytes(request)))):
        for _ in range(300):
            spoilt = bytearray(raw)
            spoilt[source.randrange(len(raw))] = source.randrange(256)
            at = source.randrange(len(raw))
            for hostile in (bytes(spoilt), raw[:at] + raw[source.randrange(len(raw)) :]):
                try:
                    read = kind.from_bytes(hostile)
                except KeyInvalid as error:
                    told = error
                    continue
                assert read == kind.from_bytes(raw)  # a space, or a letter of a number in hexadecimal
            assert not told.asked
