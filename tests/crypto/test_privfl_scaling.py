"""Stores get their own values standardised, and one equation in mean and standard deviation."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow.core.arrays import Layout
from hedgerow.core.conversation import Contribution
from hedgerow.crypto.conversation import drive
from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.privfl import ScalingGrid, ScalingParty, ScalingServer, masks, prove, scaling
from hedgerow.crypto.privfl.scaling import ASK, REPLY, REQUEST
from hedgerow.errors import HedgerowError, MessageRefused, RangeExceeded, SettingsInvalid

GRID = ScalingGrid((18.0, -5.0), (90.0, 40.0))
MEANS, SCALES = np.array([47.3, 2.25]), np.array([13.9, 0.31])


@lru_cache(maxsize=8)
def key(i=0):
    return PaillierKey.fresh(512, insecure=True)


def server(means=MEANS, scales=SCALES):
    return ScalingServer(GRID, means, scales, bits=512, insecure=True)


def given(record):
    return Contribution(Layout((("x", (2,)),)), np.array(record), GRID)


def scaled(records, means=MEANS, scales=SCALES):
    """What stores end up with."""
    stores = {f"store {i}": ScalingParty(f"store {i}", key(i)) for i in range(len(records))}
    drive(server(means, scales).standardise(stores), stores, {f"store {i}": given(x) for i, x in enumerate(records)})
    return [store.scaled for store in stores.values()]


@pytest.mark.slow
def test_a_store_gets_its_own_values_standardised():
    records = [[18.0, -5.0], [90.0, 40.0], [54.4, 2.2]]
    np.testing.assert_allclose(scaled(records), (np.array(records) - MEANS) / SCALES, atol=2.0**-23)


def test_the_server_sees_ciphertexts_of_a_strangers_key_alone():
    store = ScalingParty("store", key(0))
    ask = ASK.pack(grid=GRID.digest, columns=2)
    requests = [REQUEST.unpack(store.answer("scaling ask", ask, given(x))) for x in ([18.0, 0.0], [18.0, 0.0], [90.0, 40.0])]
    assert len({proof for proof, _ in requests}) == 1
    assert len({len(values) for _, values in requests}) == 1
    assert len({values for _, values in requests}) == 3


def test_two_records_tell_mean_and_scale_and_one_does_not():
    first, second = np.array([30.0, 1.0]), np.array([70.0, 3.0])
    (a, b) = scaled([first, second])
    found = (second - first) / (b - a)
    np.testing.assert_allclose(found, SCALES, rtol=1e-5)
    np.testing.assert_allclose(first - a * found, MEANS, rtol=1e-4)
    others = 2 * SCALES  # another mean goes with it, and gives the same value
    (same,) = scaled([first], first - (first - MEANS) * 2, others)
    np.testing.assert_allclose(same, a, atol=2.0**-23)


def test_a_store_is_answered_once():
    store, one = ScalingParty("store", key(0)), server()
    assert drive(one.standardise(["store"]), {"store": store}, {"store": given([30.0, 1.0])}) == ("store",)
    assert drive(one.standardise(["store", "store"]), {"store": store}, {"store": given([60.0, 1.0])}) == ()


def oversized(server_side, bits):
    """What a store reads that encrypts 2^bits in place of its value: the plaintexts of the reply."""
    public, store = key(0).public, key(0)
    request = REQUEST.pack(key=prove(store), values=public.pack([public.encrypt(1 << bits), public.encrypt(0)]))
    conversation = server_side.standardise(["store"])
    next(conversation)
    step = conversation.send({"store": request})
    _, raw = REPLY.unpack(step.letters["store"])
    return [store.decrypt(c) % public.n for c in public.unpack(raw, 2)]


@pytest.mark.slow
def test_of_whatever_a_store_encrypts_it_gets_one_value_modulo_its_width(monkeypatch):
    factors, _ = GRID.line(MEANS, SCALES)
    whole, _ = oversized(server(), 200)
    assert whole >> 200 != factors[0]
    tops = np.array([oversized(server(), 200)[0] / key(0).public.n for _ in range(60)])
    counts = np.histogram(tops, 4, (0, 1))[0]
    assert ((counts - 15) ** 2 / 15).sum() < chi2.isf(1e-6, 3)
    monkeypatch.setattr(scaling, "uniform_below", lambda bound: 0)  # a server without the multiple of 2^w
    whole, _ = oversized(server(), 200)
    assert whole >> 200 == factors[0]


def test_a_reply_shows_nothing_of_how_it_was_made(monkeypatch):
    public, n = key(0).public, key(0).public.n

    def randomness_left():
        request = REQUEST.pack(key=prove(key(0)), values=public.pack([public.encrypt(1, 1), public.encrypt(2, 1)]))
        conversation = server().standardise(["store"])
        next(conversation)
        _, raw = REPLY.unpack(conversation.send({"store": request}).letters["store"])
        (c, _) = public.unpack(raw, 2)
        return c * pow(1 + n, -key(0).decrypt(c), n * n) % (n * n) == 1

    assert not randomness_left()
    monkeypatch.setattr(scaling, "blinded", lambda public, c, plain: public.add_plain(c, masks.signed(plain, n)))
    assert randomness_left()


def test_values_and_lines_beyond_the_ranges_are_refused():
    store, ask = ScalingParty("store", key(0)), ASK.pack(grid=GRID.digest, columns=2)
    with pytest.raises(RangeExceeded):
        store.answer("scaling ask", ask, given([91.0, 0.0]))
    with pytest.raises(RangeExceeded, match="One record at a time"):
        store.answer("scaling ask", ask, given([50.0, 0.0, 50.0, 1.0]))
    with pytest.raises(RangeExceeded, match="No party was asked"):
        server(scales=np.array([1e-3, 1.0]))
    with pytest.raises(SettingsInvalid):
        ScalingGrid((0.0,), (0.0,))


def test_letters_that_were_not_asked_for_or_are_altered_are_refused():
    store = ScalingParty("store", key(0))
    other = ASK.pack(grid=bytes(32), columns=2)
    with pytest.raises(MessageRefused, match="ranges"):
        store.answer("scaling ask", other, given([50.0, 0.0]))
    with pytest.raises(MessageRefused, match="not asked for"):
        store.answer("scaling reply", REPLY.pack(grid=GRID.digest, values=b""))
    for step, letter in (("scaling ask", b""), ("scaling reply", b"\x93"), ("contribution", b"")):
        with pytest.raises(HedgerowError):
            store.answer(step, letter, given([50.0, 0.0]) if step == "scaling ask" else None)
    one = server()
    conversation = one.standardise(["store"])
    next(conversation)
    assert conversation.send({"store": b"nonsense", "stranger": b""}).letters == {}
    assert one.served == set()
