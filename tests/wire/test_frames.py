"""Frames over sockets and pipes."""

import io
import os
import socket
import threading

import pytest

from hedgerow.errors import MessageRefused
from hedgerow.wire import frames


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


@pytest.mark.parametrize("size", [0, 1, frames.SMALL_BYTES, frames.SMALL_BYTES + 1, 3_000_000])
def test_bodies_cross_a_socket_in_order(pair, size):
    sent = [os.urandom(size), b"next"]
    writer = threading.Thread(target=lambda: [frames.write(pair[0], body) for body in sent])
    writer.start()
    assert [frames.read(pair[1]), frames.read(pair[1])] == sent
    writer.join()


@pytest.mark.parametrize("buffering", [-1, 0])
def test_bodies_cross_a_pipe_in_pieces(buffering):
    reading, writing = os.pipe()
    body = os.urandom(1_000_000)
    with os.fdopen(reading, "rb", buffering) as source, os.fdopen(writing, "wb", buffering) as sink:
        writer = threading.Thread(target=frames.write, args=(sink, memoryview(body)))
        writer.start()
        assert frames.read(source) == body
        writer.join()


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", (5).to_bytes(8, "big"), (5).to_bytes(8, "big") + b"four"])
def test_a_stream_that_ends_anywhere_is_none(pair, sent):
    pair[0].sendall(sent)
    pair[0].close()
    assert frames.read(pair[1]) is None
    assert frames.read(io.BytesIO(sent)) is None


def test_a_frame_is_eight_bytes_of_length_and_the_body():
    sink = io.BytesIO()
    frames.write(sink, b"abc")
    assert sink.getvalue() == bytes([0, 0, 0, 0, 0, 0, 0, 3]) + b"abc"


def test_a_frame_above_the_cap_is_refused_and_one_at_the_cap_is_not():
    frame = (4).to_bytes(8, "big") + b"four"
    assert frames.read(io.BytesIO(frame), most=4) == b"four"
    with pytest.raises(MessageRefused, match="HR-242"):
        frames.read(io.BytesIO(frame), most=3)


def test_a_claimed_length_takes_no_memory_before_it_comes(pair):
    pair[0].sendall((1 << 30).to_bytes(8, "big") + b"little")
    pair[0].close()
    before = resident()
    assert frames.read(pair[1]) is None
    assert resident() - before < 50 << 20


def resident() -> int:
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    return int(peak.split()[1]) << 10
