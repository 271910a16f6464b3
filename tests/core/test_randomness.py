"""Bytes without a seed: AES-256 in counter mode, under a key of the system's for each stream and each process."""

import os
import subprocess
import sys
from itertools import count

import numpy as np
import pytest

from hedgerow.core import randomness
from hedgerow.core.randomness import Stream, Streams, keystream
from hedgerow.errors import BudgetInvalid

KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")


def test_golden_keystream_is_that_of_nist():
    """SP 800-38A, F.5.5, has another first counter; what it encrypts with AES-256 as a block cipher is in F.1.5."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES256
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    blocks = b"".join(i.to_bytes(16, "big") for i in range(4))
    encryptor = Cipher(AES256(KEY), ECB()).encryptor()
    assert encryptor.update(bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")).hex() == "f3eed1bdb5d2a03c064b5a7e3db181f8"
    assert keystream(KEY)(64) == Cipher(AES256(KEY), ECB()).encryptor().update(blocks)


def test_a_keystream_goes_on_where_it_stopped_however_it_is_cut():
    whole, cut = keystream(KEY), keystream(KEY)
    sizes = [0, 1, 15, 16, 17, 1 << 18, (1 << 18) + 5]
    assert whole(sum(sizes)) == b"".join(cut(n) for n in sizes)


def test_a_stream_without_a_name_takes_one_key_from_the_system(monkeypatch):
    asked = []

    def urandom(n):
        asked.append(n)
        return KEY

    monkeypatch.setattr(os, "urandom", urandom)
    stream = Stream(None)
    assert stream.entropy(40) + stream.entropy(3) == keystream(KEY)(43)
    assert asked == [32]


def test_no_two_streams_of_the_system_are_alike():
    streams = Streams()
    same = [streams.entropy(1, "server", "noise")(32) for _ in range(100)]
    assert len({*same, Stream(None).entropy(32)}) == 101
    bits = np.unpackbits(np.frombuffer(b"".join(same), np.uint8))
    assert abs(bits.mean() - 0.5) < 0.5 * 5 / np.sqrt(len(bits))


def test_a_forked_process_draws_a_key_of_its_own(monkeypatch):
    """Both would else add the same noise, and the difference of two releases would be without any."""
    stream, keys = Stream(None), (i.to_bytes(32, "big") for i in count())
    monkeypatch.setattr(os, "urandom", lambda n: next(keys))
    first = stream.entropy(16)
    monkeypatch.setattr(randomness.os, "getpid", lambda: -1)
    assert stream.entropy(16) == keystream((1).to_bytes(32, "big"))(16) != first


def test_a_forked_process_recalls_no_noise_and_draws_other_records_in_the_same_turns(monkeypatch):
    streams, seeded = Streams(), Streams(7)
    drawn = {purpose: streams.recalled(1, "a", purpose)(16) for purpose in ("noise of node 0 on level 0", "records", "turns")}
    same = seeded.recalled(1, "server", "noise of node 0 on level 0")(16)
    monkeypatch.setattr(randomness.os, "getpid", lambda: -1)
    with pytest.raises(BudgetInvalid, match="forked"):
        streams.recalled(1, "a", "noise of node 0 on level 0")
    assert streams.recalled(1, "a", "records")(16) == streams.recalled(1, "a", "records")(16) != drawn["records"]
    assert streams.recalled(1, "a", "turns")(16) == drawn["turns"]  # a party of two turns would pay for one
    assert seeded.recalled(1, "server", "noise of node 0 on level 0")(16) == same


FORKING = """
import os, numpy as np, hedgerow as hr
from hedgerow.errors import BudgetInvalid

@hr.local
def ones(broadcast, party, rng):
    return np.full(3, broadcast)

def child(asked):
    here, there = os.pipe()
    if not os.fork():
        try:
            os.write(there, np.asarray(federation.sum(ones, asked)).tobytes())
        except BudgetInvalid:
            os.write(there, b"refused")
        finally:
            os._exit(0)
    return os.read(here, 64)

table = hr.data.load("breast_cancer")
for mechanism in (hr.Gaussian(2.0), hr.privacy.Tree(2.0, rounds=8)):
    federation = hr.simulate(table, hr.data.iid(parties=4), seed="system").protect(clip=hr.l2(10.0), mechanism=mechanism)
    one, other = child(0.0), child(1.0)
    if one == other == b"refused":
        print("refused")
    else:
        moved = np.frombuffer(other) - np.frombuffer(one)
        print("noise" if np.ptp(moved) > 0 else "no noise")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_two_forked_processes_release_nothing_under_the_same_noise():
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:2] == ["noise", "refused"]


def test_a_seeded_stream_draws_nothing_from_the_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: pytest.fail("asked the system"))
    assert Stream("a").entropy(16) == Stream("a").entropy(16) != Stream("b").entropy(16)
