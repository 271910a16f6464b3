"""Keys: published vectors, and what must be refused."""

from __future__ import annotations

import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from vectors import (
    AFTER_1,
    AFTER_1000,
    AGREEMENTS,
    ALICE,
    ALICE_AND_BOB,
    ALICE_PUBLIC,
    BOB,
    BOB_PUBLIC,
    FALSE_SIGNATURES,
    LOW_ORDER,
    SEALED,
    groups,
    published,
)

from hedgerow.crypto import keys
from hedgerow.crypto.keys import SEAL_BYTES, AgreementKey, Identity, Roster, derive, seal, seal_to, unseal, verify
from hedgerow.errors import KeyInvalid, MessageRefused


def agree(private: bytes, public: bytes) -> bytes:
    return AgreementKey.from_bytes(private).agree(public)


def chain(times: int) -> str:
    k = u = (9).to_bytes(32, "little")
    for _ in range(times):
        k, u = agree(k, u), k
    return k.hex()


# ---- agreement ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("vector", published("asymmetric/X25519/rfc7748.txt"), ids=lambda v: v["input_scalar"][:8])
def test_agreement_gives_the_numbers_of_rfc_7748(vector):
    scalar, u = bytes.fromhex(vector["input_scalar"]), bytes.fromhex(vector["input_u"])
    assert agree(scalar, u).hex() == vector["output_u"]


def test_agreement_chained_once_gives_the_number_of_rfc_7748():
    assert chain(1) == AFTER_1


@pytest.mark.slow
def test_agreement_chained_a_thousand_times_gives_the_number_of_rfc_7748():
    assert chain(1000) == AFTER_1000


def test_alice_and_bob_agree_as_in_rfc_7748():
    alice, bob = AgreementKey.from_bytes(bytes.fromhex(ALICE)), AgreementKey.from_bytes(bytes.fromhex(BOB))
    assert (alice.public.hex(), bob.public.hex()) == (ALICE_PUBLIC, BOB_PUBLIC)
    assert alice.agree(bob.public).hex() == bob.agree(alice.public).hex() == ALICE_AND_BOB


@pytest.mark.parametrize("vector", groups(AGREEMENTS), ids=lambda v: v[1].hex()[:12])
def test_agreement_is_right_at_the_edges_of_the_arithmetic(vector):
    private, public, shared = vector
    assert agree(private, public) == shared


@pytest.mark.parametrize("point", LOW_ORDER.split())
def test_T21_points_of_low_order_are_refused(point):
    with pytest.raises(KeyInvalid, match="low order"):
        AgreementKey.fresh().agree(bytes.fromhex(point))


@pytest.mark.parametrize("public", [b"", bytes(31), bytes(33), "ab" * 16, None])
def test_public_keys_of_another_form_are_refused(public):
    with pytest.raises(KeyInvalid, match="32 bytes"):
        AgreementKey.fresh().agree(public)


def test_a_private_key_survives_its_bytes_and_stays_out_of_its_text():
    key, identity = AgreementKey.fresh(), Identity.fresh()
    assert AgreementKey.from_bytes(key.private).public == key.public
    assert Identity.from_bytes(identity.private).public == identity.public
    assert key.private.hex() not in repr(key)
    assert identity.private.hex() not in repr(identity)


# ---- identities -----------------------------------------------------------------------------------------------------
def signatures(count: int) -> list[tuple[bytes, bytes, bytes, bytes]]:
    with keys_file() as file:
        lines = file.read().splitlines()[:count]
    rows = [[bytes.fromhex(part) for part in line.split(":")[:4]] for line in lines]
    return [(secret[:32], public, message, signed[:64]) for secret, public, message, signed in rows]


def keys_file():
    import cryptography_vectors

    return cryptography_vectors.open_vector_file("asymmetric/Ed25519/sign.input", "r")


def test_signatures_are_those_of_rfc_8032():
    rows = signatures(128)
    assert rows[0][2] == b""  # the first test of section 7.1
    assert rows[0][0].hex().startswith("9d61b19deffd5a60")
    for secret, public, message, signed in rows:
        identity = Identity.from_bytes(secret)
        assert (identity.public, identity.sign(message)) == (public, signed)
        verify(public, signed, message)


def test_every_flipped_bit_of_a_signature_is_seen():
    identity = Identity.fresh()
    signed = identity.sign(b"round 7")
    for bit in range(512):
        altered = bytearray(signed)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(KeyInvalid, match="does not belong"):
            verify(identity.public, bytes(altered), b"round 7")


def test_a_signature_is_of_one_message_by_one_identity():
    one, other = Identity.fresh(), Identity.fresh()
    for public, message in ((one.public, b"round 8"), (other.public, b"round 7")):
        with pytest.raises(KeyInvalid, match="does not belong"):
            verify(public, one.sign(b"round 7"), message)
    with pytest.raises(KeyInvalid, match="64 bytes"):
        verify(one.public, one.sign(b"round 7") + b"\0", b"round 7")


@pytest.mark.parametrize("vector", groups(FALSE_SIGNATURES), ids=lambda v: v[2].hex()[:12])
def test_altered_spellings_of_a_signature_are_refused(vector):
    public, message, first, second = vector
    with pytest.raises(KeyInvalid):
        verify(public, first + second, message)


def test_identities_under_which_everything_is_signed_are_refused():
    neutral, anything = (1).to_bytes(32, "little"), b"whatever it says"
    signature = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(signature, anything)  # what happens without the check
    with pytest.raises(KeyInvalid, match="small order"):
        verify(neutral, signature, anything)
    with pytest.raises(KeyInvalid, match="small order"):
        Roster({"party 1": neutral})


def test_the_list_of_points_of_small_order_is_complete():
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p

    def doubled(y):  # the y of twice a point, from its y alone
        x2 = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        return (y * y + x2) * pow(1 - d * x2 * y * y, -1, p) % p

    assert {doubled(doubled(doubled(y))) for y in keys._SMALL_ORDER} == {1}
    assert len(keys._SMALL_ORDER) == 5  # y of order 1, 2, 4 (zero) and of the two pairs of order 8


def test_an_identity_spelt_beyond_the_field_is_refused():
    with pytest.raises(KeyInvalid, match="canonical"):
        verify((2**255 - 19 + 3).to_bytes(32, "little"), bytes(64), b"")


# ---- derivation -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("vector", published("KDF/rfc-5869-HKDF-SHA256.txt"), ids=["A.1", "A.2", "A.3"])
def test_derivation_gives_the_bytes_of_rfc_5869(vector):
    secret, salt, info = (bytes.fromhex(vector[name]) for name in ("ikm", "salt", "info"))
    assert keys.expand(secret, salt, info, int(vector["l"])).hex() == vector["okm"]


def test_derive_names_its_purpose_and_its_context():
    assert derive(b"s" * 32, "channel", b"round 1", 40) == keys.expand(b"s" * 32, None, b"channel\0round 1", 40)


def test_T23_no_two_purposes_or_contexts_share_a_key():
    labels, contexts = ["channel", "mask", "channel2", "c", "channelround 1"], [b"", b"round 1", b"round 2", b"\0", b"2"]
    derived = [derive(b"s" * 32, label, context) for label in labels for context in contexts]
    assert len(set(derived)) == len(derived)


def test_T23_a_label_that_reaches_into_its_context_is_refused():
    twin = [(label.encode() + b"\0" + context) for label, context in (("a", b"b\0c"), ("a\0b", b"c"))]
    assert twin[0] == twin[1]  # they would be one key
    for label in ("a\0b", ""):
        with pytest.raises(KeyInvalid, match="zero byte"):
            derive(b"s" * 32, label, b"c")


@pytest.mark.parametrize("length", [0, -1, 255 * 32 + 1])
def test_derive_refuses_lengths_that_hkdf_cannot_give(length):
    with pytest.raises(KeyInvalid, match="8160"):
        derive(b"s" * 32, "channel", length=length)


# ---- sealed messages ------------------------------------------------------------------------------------------------
def text_or_hex(value: str) -> bytes:
    return value[1:-1].encode() if value.startswith('"') else bytes.fromhex(value)


def sealed_vectors() -> list[list[bytes]]:
    names = ("key", "nonce", "ad", "in", "ct", "tag")
    rows = [[text_or_hex(v[name]) for name in names] for v in published("ciphers/ChaCha20Poly1305/boringssl.txt")]
    return rows + groups(SEALED)


def test_sealing_gives_the_bytes_of_rfc_8439_and_others():
    rows = sealed_vectors()
    assert rows[0][3].startswith(b"Ladies and Gentlemen of the class of '99")  # section 2.8.2
    assert len(rows) > 60
    for key, nonce, associated, plain, cipher, tag in rows:
        assert keys._seal(key, nonce, plain, associated) == cipher + tag
        assert keys._unseal(key, nonce, cipher + tag, associated) == plain


def test_seal_is_the_cipher_with_the_nonce_zero():
    assert seal(b"k" * 32, b"plain", b"context") == keys._seal(b"k" * 32, bytes(12), b"plain", b"context")
    assert unseal(b"k" * 32, seal(b"k" * 32, b"plain", b"context"), b"context") == b"plain"


def test_every_flipped_bit_of_a_sealed_message_is_seen():
    sealed = seal(b"k" * 32, b"a share", b"context")
    for bit in range(8 * len(sealed)):
        altered = bytearray(sealed)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MessageRefused, match="does not open"):
            unseal(b"k" * 32, bytes(altered), b"context")


@pytest.mark.parametrize(
    ("key", "cut", "associated"), [(b"K" * 32, 0, b"context"), (b"k" * 32, 0, b"other"), (b"k" * 32, 1, b"context")]
)
def test_another_key_context_or_length_does_not_open(key, cut, associated):
    sealed = seal(b"k" * 32, b"a share", b"context")
    with pytest.raises(MessageRefused, match="does not open"):
        unseal(key, sealed[cut:], associated)


@pytest.mark.parametrize("length", [0, 5, 15])
def test_what_is_shorter_than_a_tag_does_not_open(length):
    with pytest.raises(MessageRefused, match="does not open"):
        unseal(b"k" * 32, bytes(length), b"")


@pytest.mark.parametrize("key", [b"", b"k" * 16, b"k" * 33])
def test_sealing_keys_of_another_length_are_refused(key):
    for use in (seal, unseal):
        with pytest.raises(KeyInvalid, match="32 bytes"):
            use(key, b"plain", b"")


# ---- rosters --------------------------------------------------------------------------------------------------------
def test_a_roster_has_one_digest_whatever_its_order():
    identities = {f"party {i}": Identity.fresh().public for i in range(5)}
    backwards = dict(reversed(identities.items()))
    assert Roster(identities) == Roster(backwards)
    assert Roster(identities).digest == Roster(backwards).digest
    assert dict(Roster(identities)) == identities


def test_rosters_that_differ_in_a_name_or_a_key_differ_in_digest():
    a, b, c = (Identity.fresh().public for _ in range(3))
    rosters = [{"x": a, "y": b}, {"x": b, "y": a}, {"x": a, "yy": b}, {"xx": a, "y": b}, {"x": a}, {"x": a, "y": b, "z": c}, {}]
    assert len({Roster(roster).digest for roster in rosters}) == len(rosters)


def test_a_roster_takes_each_identity_once_and_no_nameless_party():
    public = Identity.fresh().public
    with pytest.raises(KeyInvalid, match="two ids"):
        Roster({"x": public, "y": public})
    for name in ("", 7):
        with pytest.raises(KeyInvalid, match="not text"):
            Roster({name: public})


def test_a_roster_does_not_follow_the_mapping_it_was_made_from():
    identities = {"x": Identity.fresh().public}
    roster = Roster(identities)
    identities["y"] = Identity.fresh().public
    assert list(roster) == ["x"]
    with pytest.raises(TypeError):
        roster["y"] = identities["y"]


def test_a_roster_verifies_its_own_parties_only():
    identity = Identity.fresh()
    roster = Roster({"x": identity.public})
    roster.verify("x", identity.sign(b"m"), b"m")
    with pytest.raises(KeyInvalid, match="not on the roster"):
        roster.verify("y", identity.sign(b"m"), b"m")


def test_fresh_keys_differ():
    drawn = [key().private for key in (AgreementKey.fresh, Identity.fresh) for _ in range(20)]
    assert len(set(drawn)) == 40
    ones = np.unpackbits(np.frombuffer(b"".join(key for key in drawn), np.uint8)).mean()
    assert 0.5 - 5 / 203 < ones < 0.5 + 5 / 203  # five standard deviations of 10 240 fair bits


# ---- boxes for a public key -------------------------------------------------------------------------------------------
KEM_NAME, SUITE_NAME = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x02"
"""DHKEM(X25519, HKDF-SHA256); with HKDF-SHA256 and AES-256-GCM."""


def opened_by_hand(private: AgreementKey, box: bytes, info: bytes) -> bytes:
    """RFC 9180, sections 4.1, 5.1 and 5.2, in base mode: decapsulation, key schedule, the box."""

    def extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
        return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")

    def expand(suite: bytes, key: bytes, label: bytes, context: bytes, length: int) -> bytes:
        told = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + context
        return hmac.digest(key, told + b"\x01", "sha256")[:length]

    ephemeral, cipher = box[:32], box[32:]
    agreed = extract(KEM_NAME, b"", b"eae_prk", private.agree(ephemeral))
    shared = expand(KEM_NAME, agreed, b"shared_secret", ephemeral + private.public, 32)
    context = b"\0" + extract(SUITE_NAME, b"", b"psk_id_hash", b"") + extract(SUITE_NAME, b"", b"info_hash", info)
    secret = extract(SUITE_NAME, shared, b"secret", b"")
    key, nonce = (expand(SUITE_NAME, secret, label, context, n) for label, n in ((b"key", 32), (b"base_nonce", 12)))
    return AESGCM(key).decrypt(nonce, cipher, b"")


@pytest.mark.parametrize("plain", [b"", b"a letter", bytes(100_000)], ids=len)
def test_a_box_for_a_public_key_is_that_of_rfc_9180(plain):
    mine = AgreementKey.fresh()
    box = seal_to(mine.public, plain, b"question 7")
    assert len(box) == len(plain) + SEAL_BYTES
    assert opened_by_hand(mine, box, b"question 7") == mine.open(box, b"question 7") == plain
    assert mine.open(memoryview(box), b"question 7") == plain
    assert seal_to(mine.public, plain, b"question 7")[:32] != box[:32]


def test_a_box_opens_with_its_key_and_its_info_alone_and_every_bit_of_it_counts():
    mine, other = AgreementKey.fresh(), AgreementKey.fresh()
    box = seal_to(mine.public, b"a row", b"info")
    altered = [bytes(byte ^ (1 << bit % 8) * (at == bit // 8) for at, byte in enumerate(box)) for bit in range(8 * len(box))]
    wrong = [(mine, box, b""), (mine, box, b"inf"), (other, box, b"info"), (mine, box[:-1], b"info"), (mine, b"", b"info")]
    for key, what, info in [*wrong, *((mine, changed, b"info") for changed in altered), (mine, bytes(32) + box[32:], b"info")]:
        with pytest.raises(MessageRefused, match="does not open"):
            key.open(what, info)


@pytest.mark.parametrize("public", LOW_ORDER.split())
def test_nothing_is_sealed_to_a_point_of_low_order(public):
    with pytest.raises(KeyInvalid, match="low order"):
        seal_to(bytes.fromhex(public), b"a row", b"info")


@pytest.mark.parametrize("public", [b"", bytes(31), bytes(33), "text"])
def test_nothing_is_sealed_to_what_is_no_key(public):
    with pytest.raises(KeyInvalid, match="32 bytes"):
        seal_to(public, b"a row", b"info")
