import msgpack
import pytest

from hedgerow.crypto.messages import MessageForm, Octets, Several, Whole, Words, digest, exactly
from hedgerow.errors import MessageRefused

HELLO = MessageForm("hello", round=Whole(1, 300), key=exactly(2), note=Octets(0, 4), who=Words(8), near=Several(Whole(0, 9), 3))
VALUES = {"round": 200, "key": b"ab", "note": b"", "who": "p1", "near": [1, 2]}


def parts(**changes):
    return [1, "hello", *{**VALUES, **changes}.values()]


def test_a_message_is_read_as_it_was_written():
    assert HELLO.unpack(HELLO.pack(**VALUES)) == (200, b"ab", b"", "p1", [1, 2])
    assert HELLO.pack(**VALUES) == msgpack.packb(parts())


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 0},
        {"round": 301},
        {"round": True},
        {"round": 2.0},
        {"round": "2"},
        {"round": None},
        {"key": b"abc"},
        {"key": "ab"},
        {"note": b"12345"},
        {"who": ""},
        {"who": "nine bytes"},
        {"who": "äöüßé"},
        {"who": b"p1"},
        {"near": [1, 2, 3, 4]},
        {"near": [10]},
        {"near": [[1]]},
        {"near": 3},
    ],
)
def test_a_value_of_another_kind_is_neither_sent_nor_read(changes):
    with pytest.raises(MessageRefused, match=next(iter(changes))):
        HELLO.pack(**{**VALUES, **changes})
    with pytest.raises(MessageRefused, match=next(iter(changes))):
        HELLO.unpack(msgpack.packb(parts(**changes)))


@pytest.mark.parametrize(
    "spoilt",
    [
        parts()[:-1],
        [*parts(), 1],
        [2, *parts()[1:]],
        [True, *parts()[1:]],
        [1, "hallo", *parts()[2:]],
        [1, b"hello", *parts()[2:]],
        dict(enumerate(parts())),
        parts()[::-1],
        [],
        7,
        None,
    ],
)
def test_a_message_of_another_form_is_refused(spoilt):
    with pytest.raises(MessageRefused, match="HR-242"):
        HELLO.unpack(msgpack.packb(spoilt))


def test_one_meaning_has_one_spelling():
    wide = b"\x97\xd2\x00\x00\x00\x01" + msgpack.packb(parts())[2:]
    assert msgpack.unpackb(wide) == parts()
    with pytest.raises(MessageRefused, match="canonical"):
        HELLO.unpack(wide)


@pytest.mark.parametrize(
    "raw", [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xffx", b"\x91" * 40, b"\xd4\xffx", b"\xa1\xff"]
)
def test_bytes_that_are_no_message_are_refused(raw):
    with pytest.raises(MessageRefused, match="HR-242"):
        HELLO.unpack(raw)


@pytest.mark.parametrize("raw", ["text", None, 5, bytearray(b"\x90"), [1]])
def test_what_is_not_bytes_is_refused(raw):
    with pytest.raises(MessageRefused, match="not bytes"):
        HELLO.unpack(raw)


def test_a_message_larger_than_its_form_allows_is_not_parsed(monkeypatch):
    monkeypatch.setattr(msgpack, "unpackb", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(MessageRefused, match="bytes"):
        HELLO.unpack(msgpack.packb(parts()) + bytes(HELLO.most))


def test_the_largest_message_of_a_form_fits_it():
    largest = HELLO.pack(round=300, key=b"ab", note=b"abcd", who="x" * 8, near=[9, 9, 9])
    assert len(largest) <= HELLO.most
    assert HELLO.unpack(largest)[3] == "x" * 8


def test_a_value_that_no_field_has_is_not_sent():
    with pytest.raises(MessageRefused, match="colour"):
        HELLO.pack(**VALUES, colour="red")
    with pytest.raises(MessageRefused, match="key"):
        HELLO.pack(**{k: v for k, v in VALUES.items() if k != "key"})


def test_digests_tell_lists_apart_that_join_to_the_same_bytes():
    found = [digest("a", b"bc"), digest("a", b"b", b"c"), digest("ab", b"c"), digest("a", b"bc", b""), digest("a")]
    assert len(set(found)) == 5
    assert {len(one) for one in found} == {32}


@pytest.mark.parametrize("size", [4095, 4096, 65535, 65536, 100_000])
def test_large_messages_have_one_way_to_be_written(size):
    form = MessageForm("large", round=Whole(0, 9), row=Octets(0, 1 << 20))
    message = form.pack(round=3, row=bytes(size))
    assert form.unpack(message) == (3, bytes(size))
    short = b"\xc5" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc6" + size.to_bytes(4, "big")
    at = message.index(short)
    longer = message[:at] + b"\xc6" + size.to_bytes(4, "big") + message[at + len(short) :]
    wide = message[: at - 1] + b"\xcc\x03" + message[at:]  # the round in two bytes
    for twin in ([longer] if size < 1 << 16 else []) + [wide, message + b"\0", message[:-1]]:
        with pytest.raises(MessageRefused):
            form.unpack(twin)
