"""Hidden models: exact totals, a model that parties do not see, gradients that the server does not see."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow.core.arrays import Layout, flatten
from hedgerow.core.conversation import Contribution, Step
from hedgerow.crypto.conversation import Total, drive
from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.pairwise import PairwiseMasks, PairwiseParty, PairwiseServer
from hedgerow.crypto.privfl import (
    CUBIC,
    Cubic,
    LinearGradientGrid,
    PrivFL,
    PrivFLParty,
    PrivFLServer,
    checked_key,
    masks,
    party,
    prove,
)
from hedgerow.crypto.privfl import server as server_module
from hedgerow.crypto.privfl.keyproof import KEY
from hedgerow.crypto.privfl.settings import MODEL, PREDICTORS, REPLY
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server
from hedgerow.errors import (
    CohortTooSmall,
    HedgerowError,
    KeyInvalid,
    MessageRefused,
    RangeExceeded,
    RoundRefused,
    SettingsInvalid,
)
from hedgerow.store import Answered

IDS = ("ann", "bob", "cas", "dee")
SETTINGS = PrivFL(bits=512, insecure=True)
CONTEXT = b"question 7"


@lru_cache(maxsize=1)
def a_key():
    return PaillierKey.fresh(512, insecure=True)


class OpenSum:
    """A sum of masks that hides nothing, whose parties may drop out."""

    def total(self, ids, encoding, context=b""):
        answers = yield Step("contribution", dict.fromkeys(ids, context), contributes=True)
        if len(answers) < 3:
            raise RoundRefused("too few")
        total = np.zeros(encoding.size, np.uint64)
        for answer in answers.values():
            total += np.frombuffer(answer, np.uint64)
        return Total(total, tuple(answers))


class OpenParty:
    def answer(self, step, letter, contribution=None):
        assert letter == contribution.context
        return contribution.encoding.encode(contribution.row).tobytes()


@dataclass
class World:
    """A server and four parties."""

    server: PrivFLServer
    parties: dict

    def total(self, theta, grid, contributions, ids=IDS, **kwargs):
        return drive(self.server.total(ids, theta, grid, CONTEXT), self.parties, contributions, **kwargs)


SUMS = {
    "open": (lambda id: OpenParty(), OpenSum),
    "pairwise": (lambda id: PairwiseParty(id, PairwiseMasks()), lambda: PairwiseServer(PairwiseMasks(), IDS)),
    "secagg": (lambda id: SecAggParty(id, SecAgg()), lambda: Server(SecAgg(), IDS)),
}


def world(inner="open", settings=SETTINGS):
    party_side, server_side = SUMS[inner]
    parties = {id: PrivFLParty(id, settings, party_side(id)) for id in IDS}
    server = PrivFLServer(settings, IDS, server_side(), a_key())
    drive(server.open(), parties)
    return World(server, parties)


def given(grid, arrays, context=CONTEXT):
    return Contribution(Layout.of(arrays), flatten(arrays), grid, context)


def terms(d, seed=0):
    """Terms of four one-record parties."""
    rng = np.random.default_rng(seed)
    rows, y = rng.uniform(-2, 2, (len(IDS), d)), rng.uniform(-2, 2, len(IDS))
    return {id: {"A": np.outer(x, x), "b": x * t} for id, x, t in zip(IDS, rows, y, strict=True)}


def contributions(grid, d, seed=0):
    return {id: given(grid, found) for id, found in terms(d, seed).items()}


def linear(d):
    return LinearGradientGrid(d, len(IDS), terms=4.0, target=4.0, model=8.0)


# ---- totals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inner", SUMS)
@pytest.mark.parametrize("d", [1, 4, 9])
def test_the_gradient_is_that_of_the_plain_run_to_the_step(d, inner):
    grid, theta = linear(d), np.random.default_rng(1).uniform(-3, 3, d)
    found = world(inner).total(theta, grid, contributions(grid, d))
    theta = grid.on_grid(theta)
    plain = sum(t["A"] @ theta - t["b"] for t in terms(d).values())
    np.testing.assert_allclose(
        grid.decode(found.total), plain, atol=len(IDS) * (np.abs(theta).sum() + 1) * 2.0 ** -(grid.terms_bits + 1)
    )
    assert set(found.counted) == set(IDS)


def test_survivors_are_added_up_when_a_party_leaves_before_the_masks_are_opened():
    grid, theta = linear(3), np.array([1.0, -2.0, 0.5])
    found = world("secagg").total(theta, grid, contributions(grid, 3), drops=lambda step, id: (step, id) == ("unmask", "bob"))
    plain = sum(t["A"] @ theta - t["b"] for t in terms(3).values())
    assert set(found.counted) == set(IDS)
    np.testing.assert_allclose(grid.decode(found.total), plain, atol=1e-5)


def test_arithmetic_is_exact_in_steps():
    d, grid = 5, linear(5)
    theta, rng = np.zeros(5), np.random.default_rng(2)
    theta[:] = grid.on_grid(rng.uniform(-8, 8, d))
    found = world().total(theta, grid, contributions(grid, d))
    steps, whole = grid.encode_model(theta), [0] * d
    for contribution in contributions(grid, d).values():
        A, b = grid.encode_terms(contribution.layout, contribution.row)
        whole = [w + sum(a * t for a, t in zip(row, steps, strict=True)) - e for w, row, e in zip(whole, A, b, strict=True)]
    assert found.total.view(np.int64).tolist() == whole


@pytest.mark.parametrize(("inner", "at"), [("open", "contribution"), ("secagg", "shares"), ("secagg", "contribution")])
def test_only_those_whose_masks_were_counted_are_added_up(inner, at):
    grid, theta = linear(3), np.array([1.0, -2.0, 0.5])
    found = world(inner).total(theta, grid, contributions(grid, 3), drops=lambda step, id: (step, id) == (at, "bob"))
    plain = sum(t["A"] @ theta - t["b"] for id, t in terms(3).items() if id != "bob")
    assert set(found.counted) == set(IDS) - {"bob"} == set(found.masked)
    np.testing.assert_allclose(grid.decode(found.total), plain, atol=1e-5)


@pytest.mark.parametrize("inner", SUMS)
def test_a_cubic_gradient_is_near_the_plain_one(inner):
    d, n, rng = 3, 2, np.random.default_rng(3)
    grid = Cubic(d, len(IDS), n, row=4.0, reach=8.0)
    assert grid.predictor_bits >= 9
    theta = grid.on_grid(np.array([0.8, -1.1, 0.4]))
    records = {
        id: {"X": rng.uniform(-2, 2, (n, d)), "y": rng.integers(0, 2, n).astype(float), "w": np.array([1.0, 0.5])} for id in IDS
    }
    found = world(inner).total(theta, grid, {id: given(grid, r) for id, r in records.items()})
    c0, c1, c3 = CUBIC
    plain = 0
    for r in records.values():
        z = r["X"] @ theta
        plain = plain + r["X"].T @ (r["w"] * (c0 + c1 * z + c3 * z**3 - r["y"]))
    np.testing.assert_allclose(grid.decode(found.total), plain, atol=len(IDS) * n * 2 * 2.0**-grid.predictor_bits)


def test_a_party_that_drops_after_its_predictors_is_not_counted():
    grid = Cubic(2, len(IDS), 1, row=4.0, reach=8.0)
    records = {id: {"X": np.array([[1.0, i]]), "y": np.ones(1), "w": np.ones(1)} for i, id in enumerate(IDS)}
    given_ = {id: given(grid, r) for id, r in records.items()}
    found = world().total(np.array([0.5, 0.5]), grid, given_, drops=lambda step, id: (step, id) == ("contribution", "dee"))
    z = np.array([0.5, 1.0, 1.5])
    slope = CUBIC[0] + CUBIC[1] * z + CUBIC[2] * z**3 - 1
    assert set(found.counted) == {"ann", "bob", "cas"}
    np.testing.assert_allclose(grid.decode(found.total), [slope.sum(), slope @ np.arange(3)], atol=2.0**-7)


# ---- what a party sees --------------------------------------------------------------------------------------------------
def letters_to(server, theta, grid):
    """What a party is sent for a model: nothing is decrypted."""
    conversation = server.total(IDS, theta, grid, CONTEXT)
    step = next(conversation)
    conversation.close()
    return step.letters["ann"]


def uniform(values, bins, false_alarm=1e-6):
    """Whether values in [0, 1) pass a chi-square test of uniformity."""
    counts = np.histogram(values, bins=bins, range=(0, 1))[0]
    expected = len(values) / bins
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(false_alarm, bins - 1)


def party_sees_nothing(server, grid):
    """Lengths and public parts are equal for two models; ciphertexts never repeat and their lowest byte is uniform."""
    public, n_squared = server.key.public, server.key.public.n**2
    seen, lowest = [], []
    for theta in (np.zeros(4), np.array([7.9, -3.0, 1.0, 5.5])):
        letters = [letters_to(server, theta, grid) for _ in range(40)]
        if len({len(letter) for letter in letters}) > 1:
            return False
        unpacked = [MODEL.unpack(letter) for letter in letters]
        seen.append({(key, len(model), powers) for key, model, powers, _ in unpacked})
        try:
            ciphertexts = [c for _, model, _, _ in unpacked for c in public.unpack(model, 4)]
        except MessageRefused:
            return False
        lowest.append([c % 256 / 256 for c in ciphertexts])
        if len(set(ciphertexts)) < len(ciphertexts) or not uniform(np.array(ciphertexts, dtype=float) / n_squared, 8):
            return False
    return seen[0] == seen[1] and all(uniform(part, 8) for part in lowest)


def test_the_partys_view_is_the_same_for_every_model():
    assert party_sees_nothing(world().server, linear(4))


def test_a_server_without_randomness_or_encryption_is_caught(monkeypatch):
    server, plain = world().server, a_key().public
    monkeypatch.setattr(type(plain), "encrypt", lambda self, m, r=None: int(self._plain(m)))
    assert not party_sees_nothing(server, linear(4))
    monkeypatch.setattr(type(plain), "encrypt", lambda self, m, r=None: m % self.n)
    assert not party_sees_nothing(server, linear(4))


# ---- what the server sees -----------------------------------------------------------------------------------------------
def server_sees_nothing(theta_of=lambda i: np.array([1.0, -2.0, 0.5, 3.0])):
    """Every decrypted number, of every party, is uniform modulo 2^64."""
    w, grid, found = world(), linear(4), []
    for i in range(25):
        total = w.total(theta_of(i), grid, contributions(grid, 4))
        found += [row.astype(float) / 2**64 for row in total.masked.values()]
    return uniform(np.concatenate(found), 8)


@pytest.mark.slow
def test_every_single_reply_is_uniform_to_the_server():
    assert server_sees_nothing()


@pytest.mark.slow
def test_a_party_that_leaves_out_its_masks_is_caught(monkeypatch):
    monkeypatch.setattr(masks.Limbs, "fresh", lambda self: np.zeros(self.count, np.uint64))
    assert not server_sees_nothing()


def raw_reply(server_side, model, grid, contribution, correspondent):
    """The plaintext of a reply to ciphertexts of a server's own making, and the reply itself."""
    public, inner = server_side.key.public, masks_context_of(server_side, grid, model)
    letter = MODEL.pack(key=server_side.digest, model=public.pack(model), powers=b"", inner=inner)
    (reply,) = public.unpack(REPLY.unpack(correspondent.answer("contribution", letter, contribution))[0], 1)
    return server_side.key.decrypt(reply) % public.n, reply


def masks_context_of(server_side, grid, model):
    from hedgerow.crypto.privfl.settings import masks_context

    return masks_context(CONTEXT, grid, server_side.digest, server_side.key.public.pack(model))


def learns_from_a_huge_model():
    """Whether a server that encrypts 2^300 reads a party's A from the top of the reply."""
    w, grid = world(), linear(1)
    contribution = given(grid, {"A": np.array([[3.0]]), "b": np.zeros(1)})
    ((a,),), _ = grid.encode_terms(contribution.layout, contribution.row)
    model = [w.server.key.public.encrypt(1 << 300)]
    plain, _ = raw_reply(w.server, model, grid, contribution, w.parties["ann"])
    return plain >> 300 == a


def test_a_model_beyond_all_limits_tells_the_server_nothing(monkeypatch):
    assert not learns_from_a_huge_model()

    def short(self):
        limbs = np.zeros(self.count, np.uint64)
        limbs[: 104 // self.apart] = masks.uniform_below(1 << self.bits)
        return limbs

    monkeypatch.setattr(masks.Limbs, "fresh", short)  # masks as they are usually described
    assert learns_from_a_huge_model()


def wraps_are_told():
    """Whether a server that encrypts a large part of n can count the replies that wrapped around n.

    It knows each reply, so a count compares every party's own A with a known number.
    """
    w, grid, key = world(), linear(1), a_key()
    n, large = key.public.n, key.public.n >> (grid.terms_bits + 4)
    model = [key.public.encrypt(large)]
    letter = MODEL.pack(
        key=w.server.digest, model=key.public.pack(model), powers=b"", inner=masks_context_of(w.server, grid, model)
    )
    limbs, values, replies, sums = masks.Limbs(n, grid.parties), 0, 0, 0
    for id, a in zip(IDS, (0.4, 1.3, 2.9, 3.7), strict=True):
        contribution = given(grid, {"A": np.array([[a]]), "b": np.zeros(1)})
        ((steps,),), _ = grid.encode_terms(contribution.layout, contribution.row)
        reply, row = REPLY.unpack(w.parties[id].answer("contribution", letter, contribution))
        values += steps * large
        replies += key.decrypt(*key.public.unpack(reply, 1)) % n
        sums += sum(limb << (limbs.apart * k) for k, limb in enumerate(np.frombuffer(row, np.uint64).tolist()))
    count, rest = divmod(values + sums - replies, n)
    assert rest == 0  # the sum of the values, modulo n, is what the server is meant to have
    return count <= len(IDS)


def test_whether_a_reply_wrapped_around_the_key_is_not_told(monkeypatch):
    assert not any(wraps_are_told() for _ in range(3))

    def digits(self):
        mask = masks.uniform_below(self.n)
        return np.array([(mask >> (self.apart * k)) % (1 << self.apart) for k in range(self.count)], np.uint64)

    monkeypatch.setattr(masks.Limbs, "fresh", digits)  # limbs side by side have the sum itself, not modulo n
    assert wraps_are_told()


def randomness_left(correspondent, server_side):
    """Whether a reply still shows the randomness of the ciphertexts that it was made from."""
    grid, key = linear(1), server_side.key
    contribution = given(grid, {"A": np.array([[3.0]]), "b": np.zeros(1)})
    plain, reply = raw_reply(server_side, [key.public.encrypt(5, 1)], grid, contribution, correspondent)
    n = key.public.n
    return reply * pow(1 + n, -plain, n * n) % (n * n) == 1  # ciphertexts without randomness, as the server sent them


def test_replies_carry_randomness_of_their_own(monkeypatch):
    w = world()
    assert not randomness_left(w.parties["ann"], w.server)
    monkeypatch.setattr(party, "blinded", lambda public, c, plain: public.add_plain(c, masks.signed(plain, public.n)))
    assert randomness_left(w.parties["ann"], w.server)


def test_masks_and_units_are_uniform():
    limbs = masks.Limbs(a_key().public.n, 4)
    drawn = [limbs.fresh() for _ in range(400)]
    assert uniform([limbs.value(one) / limbs.n for one in drawn], 16)
    assert uniform(np.concatenate(drawn) / 2.0**limbs.bits, 16)
    assert uniform([(masks.uniform_below(5) + 0.5) / 5 for _ in range(2000)], 5)


@pytest.mark.parametrize("parties", [3, 4, 1000, 70_000, (1 << 21) - 1])
def test_limbs_overlap_reach_beyond_the_key_and_never_fill_a_word(parties):
    limbs = masks.Limbs(a_key().public.n, parties)
    assert limbs.bits - limbs.apart == masks.HIDING + 2
    assert limbs.apart * limbs.count >= limbs.n.bit_length()
    assert parties * ((1 << limbs.bits) - 1) < 1 << 64


def test_limbs_of_a_sum_are_the_sum_of_masks():
    limbs = masks.Limbs(a_key().public.n, 3)
    drawn = [limbs.fresh() for _ in range(3)]
    assert limbs.value(sum(drawn)) == sum(limbs.value(one) for one in drawn) % limbs.n


def test_more_parties_than_words_have_room_for_are_refused():
    with pytest.raises(RangeExceeded, match="HR-243"):
        masks.Limbs(a_key().public.n, 1 << 21)


def test_slots_hold_totals_of_either_sign():
    slots, top = masks.Slots(a_key().public.n), (1 << 63) - 1
    for numbers in ([top] * slots.each, [-top] * slots.each, [-1, 0, 1, -top, top, -5, 7][: slots.each]):
        found = slots.unpacked(slots.side_by_side(numbers) % slots.n, len(numbers))
        assert found.view(np.int64).tolist() == numbers
    assert masks.Slots((1 << 2048) - 1).each == 31


# ---- keys ---------------------------------------------------------------------------------------------------------------
def test_a_well_formed_key_is_accepted_and_its_proof_is_not_another_keys():
    other = PaillierKey.fresh(512, insecure=True)
    assert checked_key(prove(a_key()), 512, insecure=True) == a_key().public
    (modulus, _), (_, roots) = KEY.unpack(prove(a_key())), KEY.unpack(prove(other))
    with pytest.raises(KeyInvalid, match="not proved"):
        checked_key(KEY.pack(modulus=modulus, roots=roots), 512, insecure=True)


@pytest.mark.slow
def test_a_key_that_shares_a_divisor_with_its_units_cannot_be_proved():
    from hedgerow.crypto.integers import fresh_prime, probably_prime

    p = fresh_prime(240)
    q = next(q for q in (2 * k * p + 1 for k in range(1 << 20, 1 << 30)) if probably_prime(q))
    n = p * q  # p divides n and q - 1, so most units have no n-th root
    size = -(-n.bit_length() // 8)
    modulus = n.to_bytes(size, "big")
    from hedgerow.crypto.privfl.keyproof import ROOTS, _units

    exponent = pow(n // p, -1, (p - 1) * (q - 1) // p)  # the best that its holder can do
    roots = b"".join(pow(unit, exponent, n).to_bytes(size, "big") for unit in _units(n, modulus))
    assert len(roots) == ROOTS * size
    with pytest.raises(KeyInvalid):
        checked_key(KEY.pack(modulus=modulus, roots=roots), 256, insecure=True)


def test_short_long_pinned_and_unknown_keys_are_refused():
    with pytest.raises(KeyInvalid, match="wants 1024"):
        checked_key(prove(a_key()), 1024, insecure=True)
    with pytest.raises(KeyInvalid, match="wants 128 to twice"):
        checked_key(prove(a_key()), 128, insecure=True)
    with pytest.raises(KeyInvalid, match="told to expect"):
        PrivFLParty("ann", SETTINGS, OpenParty(), pinned=bytes(32)).answer("paillier-key", prove(a_key()))
    w, grid = world(), linear(1)
    letter = letters_to(w.server, np.zeros(1), grid)
    with pytest.raises(KeyInvalid, match="not checked"):
        PrivFLParty("ann", SETTINGS, OpenParty()).answer("contribution", letter, contributions(grid, 1)["ann"])
    with pytest.raises(SettingsInvalid):
        PrivFL(bits=1024)


@pytest.mark.slow
def test_a_party_holds_few_keys():
    held = PrivFLParty("ann", replace(SETTINGS, bits=256), OpenParty())
    for _ in range(4):
        held.answer("paillier-key", prove(PaillierKey.fresh(256, insecure=True)))
    with pytest.raises(KeyInvalid, match="more than 4"):
        held.answer("paillier-key", prove(PaillierKey.fresh(256, insecure=True)))


# ---- refusals -----------------------------------------------------------------------------------------------------------
def test_rounds_are_capped_also_after_a_restart(tmp_path):
    few, grid = replace(SETTINGS, most_rounds=2), linear(1)
    given_ = contributions(grid, 1)
    for restarts in range(2):
        journals = [Answered(tmp_path / f"{id}.log") for id in IDS]
        parties = {id: PrivFLParty(id, few, OpenParty(), journal=j) for id, j in zip(IDS, journals, strict=True)}
        server = PrivFLServer(few, IDS, OpenSum(), a_key())
        drive(server.open(), parties)
        assert parties["ann"].rounds(server.digest) == restarts
        w = World(server, parties)
        w.total(np.ones(1), grid, given_)
        for journal in journals[: 4 * (restarts == 0)]:
            journal.close()
    codes = {}
    with pytest.raises(RoundRefused):
        w.total(np.ones(1), grid, given_, refused=codes)
    assert codes == dict.fromkeys(IDS, "HR-242")


def two_faced(server, grid):
    """A server's conversation in which one party is sent another model."""
    conversation, public, answers = server.total(IDS, np.ones(1), grid, CONTEXT), server.key.public, None
    while True:
        try:
            step = next(conversation) if answers is None else conversation.send(answers)
        except StopIteration as end:
            return end.value
        if step.contributes:
            key, _, powers, inner = MODEL.unpack(step.letters["bob"])
            other = MODEL.pack(key=key, model=public.pack([public.encrypt(0)]), powers=powers, inner=inner)
            step = replace(step, letters={**step.letters, "bob": other})
        answers = yield step


@pytest.mark.parametrize("inner", ["pairwise", "secagg"])
def test_a_party_that_was_sent_another_model_is_in_no_total(inner):
    w, grid, codes = world(inner), linear(1), {}
    try:
        counted = drive(two_faced(w.server, grid), w.parties, contributions(grid, 1), refused=codes).counted
    except RoundRefused:
        counted = ()
    assert codes == {"bob": "HR-242"}
    assert set(counted) == (set() if inner == "pairwise" else set(IDS) - {"bob"})


def test_without_the_binding_a_model_for_one_party_goes_through(monkeypatch):
    monkeypatch.setattr(party, "masks_context", lambda context, *_: context)
    monkeypatch.setattr(server_module, "masks_context", lambda context, *_: context)
    w, grid = world("secagg"), linear(1)
    found = drive(two_faced(w.server, grid), w.parties, contributions(grid, 1))
    alone = sum(t["A"][0, 0] * (id != "bob") - t["b"][0] for id, t in terms(1).items())
    np.testing.assert_allclose(grid.decode(found.total), alone, atol=1e-5)  # one subtraction away from bob's own A


def test_what_is_no_ciphertext_is_refused_and_counts_no_round():
    w, grid = world(), linear(2)
    n, fit = a_key().public.n, a_key().public.encrypt(1)
    for bad in (0, n, n * n, n * n + 1):
        size = a_key().public.ciphertext_bytes
        model = fit.to_bytes(size, "big") + bad.to_bytes(size, "big")
        letter = MODEL.pack(key=w.server.digest, model=model, powers=b"", inner=b"")
        with pytest.raises(MessageRefused):
            w.parties["ann"].answer("contribution", letter, contributions(grid, 2)["ann"])
    assert w.parties["ann"].rounds(w.server.digest) == 0


def test_altered_letters_are_refused_with_a_code():
    import random

    w, grid, chance = world(), linear(2), random.Random(0)
    good, given_ = letters_to(w.server, np.ones(2), grid), contributions(grid, 2)["ann"]
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            bad[chance.randrange(60)] ^= 1 << chance.randrange(8)
        bad = bytes(bad[: chance.choice([len(bad), chance.randrange(len(bad))])])
        if bad == good:
            continue
        for step in ("contribution", "predictors", "paillier-key"):
            with pytest.raises((HedgerowError, AssertionError)):  # the sum in the open asserts its context
                w.parties["ann"].answer(step, bad, given_)
    assert w.parties["ann"].rounds(w.server.digest) == 0


def test_a_malformed_reply_is_a_dropout():
    w, grid = world(), linear(2)
    for nonsense in (b"", b"\xff" * 40, REPLY.pack(reply=b"1", inner=b"")):
        w.parties["cas"] = type("Broken", (), {"answer": lambda self, *_: nonsense})()
        found = w.total(np.ones(2), grid, contributions(grid, 2))
        assert "cas" not in found.counted


def test_limits_are_kept_by_whoever_holds_the_number():
    w, grid, codes = world(), linear(2), {}
    for theta in (np.array([9.0, 0.0]), np.array([np.nan, 0.0]), np.zeros(3)):
        with pytest.raises(RangeExceeded, match="No party was asked"):
            w.total(theta, grid, contributions(grid, 2))
    beyond = contributions(grid, 2) | {"bob": given(grid, {"A": np.full((2, 2), 5.0), "b": np.zeros(2)})}
    assert "bob" not in w.total(np.ones(2), grid, beyond, refused=codes).counted
    assert codes == {"bob": "HR-243"}
    cubic = Cubic(2, len(IDS), 1, row=4.0, reach=8.0)
    with pytest.raises(RangeExceeded):
        w.total(np.array([2.0, 2.0]), cubic, {})
    with pytest.raises(RangeExceeded, match="64 bits leave too few steps"):
        LinearGradientGrid(20, 10**9, terms=1e6, target=1e6, model=1e6)


def test_small_cohorts_are_refused_before_and_after():
    w, grid = world(), linear(2)
    with pytest.raises(CohortTooSmall):
        w.total(np.ones(2), grid, contributions(grid, 2), ids=IDS[:2])
    with pytest.raises(RoundRefused):
        w.total(np.ones(2), grid, contributions(grid, 2), drops=lambda step, id: id in IDS[:2])


def test_powers_under_another_key_than_the_predictors_are_refused():
    w, cubic, other = world(), Cubic(1, len(IDS), 1, row=4.0, reach=8.0), PaillierKey.fresh(512, insecure=True)
    record = given(cubic, {"X": np.ones((1, 1)), "y": np.ones(1), "w": np.ones(1)})
    ann, model = w.parties["ann"], (12345).to_bytes(a_key().public.ciphertext_bytes, "big")  # a ciphertext under both
    second = ann.answer("paillier-key", prove(other))
    ann.answer("predictors", PREDICTORS.pack(key=w.server.digest, model=model), record)
    powers = other.public.pack([other.public.encrypt(i) for i in range(3)])
    with pytest.raises(MessageRefused, match="has not sent"):
        ann.answer("contribution", MODEL.pack(key=second, model=model, powers=powers, inner=b""), record)


def test_powers_that_were_not_asked_for_are_refused():
    w, public = world(), a_key().public
    cubic = Cubic(1, len(IDS), 1, row=4.0, reach=8.0)
    record = given(cubic, {"X": np.ones((1, 1)), "y": np.ones(1), "w": np.ones(1)})
    powers = public.pack([public.encrypt(i) for i in range(3)])
    letter = MODEL.pack(key=w.server.digest, model=public.pack([public.encrypt(1)]), powers=powers, inner=b"")
    with pytest.raises(MessageRefused, match="has not sent"):
        w.parties["ann"].answer("contribution", letter, record)
    with pytest.raises(MessageRefused, match="needs none"):
        w.parties["ann"].answer("contribution", letter, contributions(linear(1), 1)["ann"])
