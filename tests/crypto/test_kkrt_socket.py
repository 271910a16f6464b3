"""KKRT over a socket: two threads, letters in parts, none of them large."""

from __future__ import annotations

import socket
import struct
import threading

import pytest
from kkrt_driver import NAMES, entropy_of

from hedgerow.crypto.psi.kkrt import KKRT, protocol
from hedgerow.wire.values import pack, unpack

LARGEST = 16_000_000


def exactly(end, n):
    parts = []
    while n:
        parts.append(end.recv(min(n, 1 << 16)))
        assert parts[-1], "the other end was closed"
        n -= len(parts[-1])
    return b"".join(parts)


def talk(end, other, peer, kept, results, name):
    """Carry one peer out over its end of a socket: in each round a length and a letter; the length -1 stands for silence."""
    letters = next(peer)
    while True:
        letter = letters.get(other)
        written = threading.Thread(
            target=end.sendall, args=(struct.pack("<q", -1) if letter is None else struct.pack("<q", len(letter)) + letter,)
        )
        written.start()
        (size,) = struct.unpack("<q", exactly(end, 8))
        came = {} if size < 0 else {other: exactly(end, size)}
        written.join()
        kept.extend(len(c) for c in came.values())
        try:
            letters = peer.send(came)
        except StopIteration as stop:
            results[name] = stop.value
            return


def over_a_socket(lists, by):
    ends, results, kept = socket.socketpair(), {}, []
    peers = [by.peer(name, NAMES, lists[name], entropy=entropy_of(i)) for i, name in enumerate(NAMES)]
    threads = [
        threading.Thread(target=talk, args=(ends[i], NAMES[1 - i], peers[i], kept, results, NAMES[i]), daemon=True)
        for i in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for end in ends:
        end.close()
    return results, kept


@pytest.mark.slow
def test_the_matrix_travels_over_a_socket_in_parts(monkeypatch):
    monkeypatch.setattr(protocol, "BINS_IN_LETTER", 1 << 9)
    monkeypatch.setattr(protocol, "TAGS_IN_LETTER", 1000)
    lists = {"alice": [b"%d" % i for i in range(4000)], "bob": [b"%d" % i for i in range(3000, 8000)]}
    results, kept = over_a_socket(lists, KKRT(small_domain="accepted"))
    assert {lists["alice"][row] for row in results["alice"].rows} == set(lists["alice"]) & set(lists["bob"])
    assert [lists["alice"][row] for row in results["alice"].rows] == [lists["bob"][row] for row in results["bob"].rows]
    assert results["alice"].sizes == results["bob"].sizes == {"alice": 4000, "bob": 5000}
    assert max(kept) <= (1 << 9) * 64
    assert sum(kept) > 4000 * 1.3 * 64


def test_no_letter_is_larger_than_sixteen_megabytes():
    assert protocol.BINS_IN_LETTER * protocol.ROW_BYTES <= LARGEST
    assert protocol.TAGS_IN_LETTER * protocol.TAG_BYTES <= LARGEST
    assert protocol.NAMES_IN_LETTER * protocol.NAME_BYTES <= LARGEST


def test_settings_travel_to_parties_elsewhere():
    by = KKRT(least=12, learns="alice", small_domain="accepted")
    assert unpack(pack(by)) == by
