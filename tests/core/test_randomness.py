"""Bytes without a seed: AES-256 in counter mode, under a key of the system's for each stream and each process."""

import os
from itertools import count

import numpy as np
import pytest

from hedgerow.core import randomness
from hedgerow.core.randomness import Stream, Streams, keystream

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


def test_a_seeded_stream_draws_nothing_from_the_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: pytest.fail("asked the system"))
    assert Stream("a").entropy(16) == Stream("a").entropy(16) != Stream("b").entropy(16)
