"""Letters: what goes in comes out, nothing else comes out, and each check of `disclose` is needed."""

import contextlib
import hashlib
import random
import time
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from holders import ALPHA, BETA, HUB, PUBLIC_IDENTITIES, STUDY, key_material

from hedgerow.crypto.keys import seal_to, verify
from hedgerow.crypto.messages import digest
from hedgerow.errors import KeyInvalid, MessageRefused, StationUnknown
from hedgerow.wire import envelope
from hedgerow.wire.envelope import HEADER, KeyMaterial, PublicIdentity, disclose, enclose

PARTS = [b"common", b"own", b""]
LENGTHS = {"kind": "ask", "study": STUDY, "number": 7}


def letter(mine=HUB, theirs=ALPHA, parts=PARTS, **fields):
    return enclose(mine, theirs.public_identity, parts=parts, **{**LENGTHS, **fields})


def taken_apart(raw):
    start = 4 + int.from_bytes(raw[:4], "big")
    fields = dict(zip(HEADER.kinds, HEADER.unpack(raw[4:start]), strict=True))
    return fields, raw[start + 64 :]


def context_of(fields):
    """What the box of a letter from hub to alpha is bound to."""
    frame = HEADER.pack(**{**fields, "digest": bytes(32)})
    return digest(
        "letter context", frame, HUB.public_identity.identity, ALPHA.public_identity.identity, ALPHA.public_identity.agreement
    )


def put_together(fields, box, signer, sender, recipient):
    """A letter from a header and a box, with a sound signature of `signer`."""
    header = HEADER.pack(**{**fields, "digest": hashlib.sha256(box).digest()})
    signature = signer.sign(digest("letter signature", header, sender.identity, recipient.identity, recipient.agreement))
    return b"".join([len(header).to_bytes(4, "big"), header, signature, box])


def test_a_letter_is_opened_as_it_was_closed():
    raw = letter()
    opened = disclose(ALPHA, PUBLIC_IDENTITIES, raw)
    assert (opened.sender, opened.recipient, opened.kind) == ("hub", "alpha", "ask")
    assert (opened.study, opened.number, opened.answers, opened.parts) == (STUDY, 7, b"", tuple(PARTS))
    answer = disclose(HUB, PUBLIC_IDENTITIES, letter(ALPHA, HUB, [b"42"], kind="answer", answers=opened.digest))
    assert answer.answers == opened.digest
    assert answer.parts == (b"42",)
    assert disclose(ALPHA, PUBLIC_IDENTITIES, bytearray(raw)) == disclose(ALPHA, PUBLIC_IDENTITIES, memoryview(raw)) == opened


def test_a_letter_may_have_no_parts_or_large_ones():
    assert disclose(ALPHA, PUBLIC_IDENTITIES, letter(parts=[])).parts == ()
    body = bytes(1_000_000)
    assert disclose(ALPHA, PUBLIC_IDENTITIES, letter(parts=[body, body])).parts == (body, body)


def test_two_letters_of_the_same_words_have_nothing_in_common_but_their_header():
    (one, first), (two, second) = taken_apart(letter()), taken_apart(letter())
    assert first[:32] != second[:32]
    assert first[32:] != second[32:]
    assert one["digest"] != two["digest"]
    assert disclose(ALPHA, PUBLIC_IDENTITIES, letter()).digest != disclose(ALPHA, PUBLIC_IDENTITIES, letter()).digest


def test_no_part_can_be_read_on_the_way():
    body = b"a sum over the records " * 50
    assert b"records" not in letter(parts=[body, b"score_and_information"])
    assert b"score" not in letter(parts=[body, b"score_and_information"])


def test_parts_are_sealed_as_the_docstring_says():
    fields, box = taken_apart(letter())
    suite, key = (
        Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM),
        X25519PrivateKey.from_private_bytes(ALPHA.agreement.private),
    )
    assert suite.decrypt(box, key, context_of(fields)) == b"".join(PARTS)
    assert fields["sizes"] == [len(part) for part in PARTS]


def test_every_byte_of_a_letter_counts():
    raw = letter()
    for at in range(len(raw)):
        spoilt = bytearray(raw)
        spoilt[at] ^= 1 << at % 8
        with pytest.raises((MessageRefused, KeyInvalid, StationUnknown)):
            disclose(ALPHA, PUBLIC_IDENTITIES, bytes(spoilt))


@pytest.mark.parametrize("spoilt", [lambda raw: raw[:-1], lambda raw: raw + b"\0", lambda raw: raw[1:], lambda raw: raw[:40]])
def test_a_letter_that_is_cut_or_longer_is_refused(spoilt):
    with pytest.raises(MessageRefused):
        disclose(ALPHA, PUBLIC_IDENTITIES, spoilt(letter()))


def test_nobody_else_opens_a_letter():
    for thief in (
        BETA,
        HUB,
        key_material("alpha"),
        key_material("alpha", identity=ALPHA.identity),
        key_material("alpha", agreement=ALPHA.agreement),
    ):
        with pytest.raises((MessageRefused, KeyInvalid)):
            disclose(thief, PUBLIC_IDENTITIES, letter())


def test_a_sender_who_was_taken_off_the_roster_is_unknown():
    with pytest.raises(StationUnknown, match="'hub'"):
        disclose(ALPHA, {"beta": BETA.public_identity}, letter())
    with pytest.raises(StationUnknown):
        disclose(ALPHA, {"hub": BETA.public_identity}, letter())


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": ""},
        {"kind": "k" * 17},
        {"study": bytes(15)},
        {"number": -1},
        {"number": 2**63},
        {"answers": b"x"},
        {"parts": [b""] * 65},
    ],
)
def test_what_no_header_holds_is_not_sent(fields):
    with pytest.raises(MessageRefused):
        letter(**fields)


@pytest.mark.parametrize("name", ["", "a b", "../alpha", "-x", "a" * 64, "ä", "a\n", None])
def test_a_name_that_no_file_or_certificate_takes_is_refused(name):
    with pytest.raises(KeyInvalid, match="name"):
        PublicIdentity(name, ALPHA.public_identity.identity, ALPHA.public_identity.agreement)


def test_a_card_has_keys_of_the_right_size_and_a_seat_the_keys_of_its_card():
    with pytest.raises(KeyInvalid):
        PublicIdentity("alpha", ALPHA.public_identity.identity, b"short")
    with pytest.raises(KeyInvalid):
        PublicIdentity("alpha", bytes(32), ALPHA.public_identity.agreement)
    with pytest.raises(KeyInvalid):
        replace(ALPHA.public_identity, certificate=b"x")
    with pytest.raises(KeyInvalid, match="alpha"):
        KeyMaterial(ALPHA.public_identity, BETA.identity, ALPHA.agreement)
    assert ALPHA.identity.private.hex() not in repr(ALPHA)


# Forgeries that only one check finds. `twin` is a `disclose` without that check: it takes the forgery in.

TWIN = key_material("beta", ALPHA.identity, ALPHA.agreement)
"""Another station with the keys of alpha: whoever copied a folder."""


def for_a_twin():
    return letter(HUB, TWIN)


def in_the_name_of_hub():
    """Everything that public keys allow: only the signature is somebody else's."""
    fields = {**LENGTHS, "sender": "hub", "recipient": "alpha", "answers": b"", "sizes": [6]}
    box = seal_to(ALPHA.public_identity.agreement, b"forged", context_of(fields))
    return put_together(fields, box, BETA.identity, HUB.public_identity, ALPHA.public_identity)


def with_another_body():
    """A sender that shows two bodies under one signed header."""
    raw = letter(parts=[b"yes"])
    fields, box = taken_apart(raw)
    return raw[: -len(box)] + seal_to(ALPHA.public_identity.agreement, b"no!", context_of(fields))


def signed_by_another_station(**changes):
    """Beta takes the sealed parts of alpha's letter to hub and says that they are its own."""
    fields, box = taken_apart(letter(ALPHA, HUB))
    return put_together({**fields, "sender": "beta", **changes}, box, BETA.identity, BETA.public_identity, HUB.public_identity)


def cut_elsewhere():
    """The sender's own signature over its own box, whose parts begin and end elsewhere."""
    fields, box = taken_apart(letter(ALPHA, HUB, [b"aaa", b"bbb"]))
    return put_together({**fields, "sizes": [2, 4]}, box, ALPHA.identity, ALPHA.public_identity, HUB.public_identity)


def skip(*_):
    return None


CHECKS = {
    "recipient's name": (for_a_twin, ALPHA, "_check_recipient", skip, MessageRefused),
    "signature": (in_the_name_of_hub, ALPHA, "_check_signature", skip, KeyInvalid),
    "digest of the box": (with_another_body, ALPHA, "_check_digest", skip, MessageRefused),
    "header in the box": (signed_by_another_station, HUB, "_context", lambda *_: bytes(32), MessageRefused),
    "sizes in the box": (cut_elsewhere, HUB, "_context", lambda *_: bytes(32), MessageRefused),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_forgery_is_refused_and_a_twin_without_the_check_takes_it(check, monkeypatch):
    forge, reader, name, broken, error = CHECKS[check]
    with pytest.raises(error):
        disclose(reader, PUBLIC_IDENTITIES, forge())
    monkeypatch.setattr(envelope, name, broken)
    disclose(reader, PUBLIC_IDENTITIES, forge())


def test_a_twin_that_does_not_ask_the_roster_takes_a_letter_of_who_was_taken_off(monkeypatch):
    left = {"beta": BETA.public_identity}
    with pytest.raises(StationUnknown):
        disclose(ALPHA, left, letter())
    monkeypatch.setattr(envelope, "_sender", lambda fields, public_identities: PUBLIC_IDENTITIES[fields["sender"]])
    assert disclose(ALPHA, left, letter()).sender == "hub"


def test_the_signature_is_of_the_whole_header_and_both_holders():
    raw = letter()
    start = 4 + int.from_bytes(raw[:4], "big")
    header, signature = raw[4:start], raw[start : start + 64]
    told = (HUB.public_identity.identity, ALPHA.public_identity.identity, ALPHA.public_identity.agreement)
    verify(HUB.public_identity.identity, signature, digest("letter signature", header, *told))
    assert disclose(ALPHA, PUBLIC_IDENTITIES, raw).digest == digest("letter", header, signature)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "board"},
        {"number": 8},
        {"study": bytes(16)},
        {"answers": bytes(32)},
        {"recipient": "beta"},
        {"sender": "beta"},
        {"sizes": [3, 6, 0]},
        {"sizes": [9]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_sealed_parts_open_under_no_other_header(changes):
    """Whoever signs it: the sender, another station, the recipient."""
    fields, box = taken_apart(letter(ALPHA, HUB))
    for signer in (ALPHA, BETA, HUB):
        changed = {**fields, "sender": signer.public_identity.name, **changes}
        reader = BETA if changed["recipient"] == "beta" else HUB
        sender = {"alpha": ALPHA, "beta": BETA, "hub": HUB}[changed["sender"]]
        forged = put_together(changed, box, sender.identity, sender.public_identity, reader.public_identity)
        with pytest.raises(MessageRefused, match="does not open"):
            disclose(reader, PUBLIC_IDENTITIES, forged)


def signed_by_hub(fields, box):
    return put_together(fields, box, HUB.identity, HUB.public_identity, ALPHA.public_identity)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sizes": [24]}, "its header says"),
        ({"sizes": []}, "its header says"),
        ({"sizes": [25, 1]}, "its header says"),
        ({"sizes": [1 << 30, 1]}, "in its parts"),
        ({"answers": b"short"}, "answers a digest"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused_though_its_sender_signed_it(changes, why):
    fields, box = taken_apart(letter(parts=[bytes(25)]))
    with pytest.raises(MessageRefused, match=why):
        disclose(ALPHA, PUBLIC_IDENTITIES, signed_by_hub({**fields, **changes}, box))


def test_parts_that_are_too_large_together_are_not_sealed(monkeypatch):
    monkeypatch.setattr(envelope, "MOST_BYTES", 8)
    assert disclose(ALPHA, PUBLIC_IDENTITIES, letter(parts=[b"1234", b"5678"])).parts == (b"1234", b"5678")
    with pytest.raises(MessageRefused, match="in its parts"):
        letter(parts=[b"1234", b"56789"])


def test_an_ephemeral_key_of_low_order_opens_nothing_and_nothing_is_sealed_to_one():
    fields, box = taken_apart(letter())
    with pytest.raises(MessageRefused, match="does not open"):
        disclose(ALPHA, PUBLIC_IDENTITIES, signed_by_hub(fields, bytes(32) + box[32:]))
    with pytest.raises(KeyInvalid, match="low order"):
        enclose(HUB, replace(ALPHA.public_identity, agreement=bytes(32)), "ask", [b"x"])


def hostile(random, raw):
    """Bytes of every sort: noise, letters with bytes changed, lengths that lie, letters cut and glued."""
    kind = random.randrange(5)
    if kind == 0:
        return random.randbytes(random.randrange(400))
    if kind == 1:
        return random.randrange(2**32).to_bytes(4, "big") + random.randbytes(random.randrange(300))
    spoilt = bytearray(raw)
    if kind == 2:
        at = random.randrange(len(raw))
        return bytes(spoilt[:at] + spoilt[random.randrange(len(raw)) :])
    start = 4 + int.from_bytes(raw[:4], "big")
    for _ in range(random.randrange(1, 6)):
        spoilt[random.randrange(start if kind == 3 else len(raw))] = random.randrange(256)
    return bytes(spoilt)


def attacked(n):
    source, raw = random.Random(5), letter()
    for _ in range(n):
        spoilt = hostile(source, raw)
        if spoilt == raw:
            continue
        with contextlib.suppress(MessageRefused, KeyInvalid, StationUnknown):
            disclose(ALPHA, PUBLIC_IDENTITIES, spoilt)
            raise AssertionError("a hostile letter was opened")


def test_hostile_bytes_are_refused():
    attacked(1500)


@pytest.mark.slow
def test_a_hundred_thousand_hostile_byte_strings_are_refused_quickly():
    started = time.process_time()
    attacked(100_000)
    assert time.process_time() - started < 60


@pytest.mark.parametrize("raw", [b"", None, "text", [b"x"], b"\xff" * 10_000, bytes(5000)])
def test_what_is_no_letter_is_refused(raw):
    with pytest.raises(MessageRefused):
        disclose(ALPHA, PUBLIC_IDENTITIES, raw)
