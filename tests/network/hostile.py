"""Hostile bytes: drawn, mutated, cut, spliced and replayed letters, and bombs for whoever reads what is inside of one."""

from __future__ import annotations

import msgpack

from hedgerow.wire.envelope import LEAD_BYTES, SIGNATURE_BYTES

MAGIC = b"HGV\x01"


def mutated(raw, rng):
    """A letter with a few bits changed, cut, longer, or with bytes from elsewhere in it."""
    raw, way = bytearray(raw), rng.random()
    if way < 0.5:
        for _ in range(rng.choice([1, 1, 2, 8])):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    elif way < 0.65:
        del raw[rng.randrange(len(raw)) :]
    elif way < 0.75:
        raw += rng.randbytes(rng.choice([1, 7, 300]))
    elif way < 0.85:
        at = rng.randrange(len(raw))
        raw[at : at + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(40))
    elif way < 0.95:
        raw[:LEAD_BYTES] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", rng.randbytes(4)])
    else:
        start = rng.randrange(len(raw))
        del raw[start : start + rng.randrange(1, 64)]
    return bytes(raw)


def spliced(one, other, rng):
    """The head of one letter before the parts of another, or with its signature."""
    cut, cross = (LEAD_BYTES + int.from_bytes(raw[:LEAD_BYTES], "big") for raw in (one, other))
    if rng.random() < 0.5:
        return one[: cut + SIGNATURE_BYTES] + other[cross + SIGNATURE_BYTES :]
    return one[:cut] + other[cross : cross + SIGNATURE_BYTES] + one[cut + SIGNATURE_BYTES :]


def headed(*tokens, body=b""):
    """A message of these tokens, whose lengths are right."""
    head = b"".join(msgpack.packb(token, use_bin_type=True) for token in tokens)
    return MAGIC + len(head).to_bytes(4, "little") + head + body


BOMBS = [
    b"",
    MAGIC,
    MAGIC + b"\xff\xff\xff\x7f",
    headed(b"t", 1 << 31),
    headed(*[b"t", 1] * 5_000, None),
    headed(*[b"l", 2] * 40),
    headed(b"a", "<f8", 2, 1 << 31, 1 << 31),
    headed(b"a", "<f8", 32, *[1 << 20] * 32),
    headed(b"a", "<f8", 3, 0, 1 << 40, 1 << 40),
    headed(b"a", "O", 1, 1),
    headed(b"B", 1 << 40),
    headed(b"i", b"\x01" * 200_000),
    headed(b"d", 2, "x", 1, "x", 2),
    headed(b"s", 1, b"l", 0),
    headed(b"f", "os:system"),
    headed(b"f", "subprocess:Popen"),
    headed(b"f", "hedgerow.errors:suggestion"),
    headed(b"p", b"f", "builtins:eval", b"t", 1, "1", b"d", 0),
    headed(b"o", "hedgerow.network.identity.key_folder:KeyFolder", 1, "path", "/"),
    headed(b"o", "hedgerow.core.arrays:Layout", 1, "shapes", b"t", 1, b"t", 2, "", b"t", 2, 1 << 31, 1 << 31),
    headed(b"k", "hedgerow.learn.models:Model", b"x" * 100),
    MAGIC + (20).to_bytes(4, "little") + b"\xdd\x7f\xff\xff\xff" * 4,
    MAGIC + (5).to_bytes(4, "little") + b"\xdf\xff\xff\xff\xff",
    MAGIC + (6).to_bytes(4, "little") + b"\xc9\xff\xff\xff\xff\x01",
    headed("x" * 50_000),
    headed(float("nan")),
]
"""Messages that promise more than they have, nest, repeat, or name what nobody may name."""
