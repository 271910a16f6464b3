"""Letters of any length: cut into pieces of at most `LONGEST` bytes, over as many rounds as the longest of all letters needs.

    round 1     to everybody    rounds that this peer needs | length of this letter | first piece
    then        further pieces, until the largest number of rounds that anybody has named is over

Everybody writes to everybody in the first round, so that all know how many rounds there will be.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Generator, Mapping

from hedgerow.crypto.peers import Letters
from hedgerow.errors import MessageRefused

LONGEST = 8 << 20
"""Most bytes of a piece."""
MOST_ROUNDS = 4096
"""More rounds are refused: 32 GB to one recipient."""

_HEAD = struct.Struct("<IQ")


def exchange(
    me: str, out: Mapping[str, bytes], everyone: Collection[str], lawful: Mapping[str, Collection[int]]
) -> Generator[Letters, Mapping[str, bytes], Letters]:
    """Write `out` to the others, and return what came from each of them.

    Parameters
    ----------
    me : str
    out : mapping from recipient to bytes
        Who is not named gets an empty letter.
    everyone : collection of str
        All peers, `me` among them.
    lawful : mapping from sender to lengths
        The lengths that a letter from each of them may have; 0 where a sender is not named.

    Raises
    ------
    MessageRefused (HR-242)
        A letter is missing, of another length, or not in the announced pieces.
    """
    others = [name for name in everyone if name != me]
    needed = max((_pieces(len(letter)) for letter in out.values()), default=1)
    views = {name: memoryview(out.get(name, b"")) for name in others}
    came = yield {name: _HEAD.pack(needed, len(view)) + bytes(view[:LONGEST]) for name, view in views.items()}
    heads = {name: _head(name, came, lawful.get(name, (0,))) for name in others}
    parts = {name: [bytes(memoryview(came[name])[_HEAD.size :])] for name in others}
    _refuse_strangers(came, others)
    rounds = max([needed, *(rounds for rounds, _ in heads.values())])
    for turn in range(1, rounds):
        piece = slice(turn * LONGEST, (turn + 1) * LONGEST)
        came = yield {name: bytes(view[piece]) for name, view in views.items() if turn < _pieces(len(view))}
        _refuse_strangers(came, [name for name in others if turn < _pieces(heads[name][1])])
        for name, part in came.items():
            parts[name].append(part)
    return {name: _whole(name, parts[name], heads[name][1]) for name in others}


def _pieces(length: int) -> int:
    return max(1, -(-length // LONGEST))


def _head(name: str, came: Mapping[str, bytes], lawful: Collection[int]) -> tuple[int, int]:
    """The rounds that a sender needs, and the length of its letter."""
    letter = came.get(name, b"")
    if len(letter) < _HEAD.size:
        raise MessageRefused(f"no letter came from {name!r}, or one of {len(letter)} bytes.", remedy="Nothing of it was used.")
    rounds, length = _HEAD.unpack_from(letter)
    if length not in lawful or not _pieces(length) <= rounds <= MOST_ROUNDS:
        raise MessageRefused(
            f"a letter from {name!r} of {length} bytes in {rounds} rounds, where {_in_words(lawful)} bytes were due.",
            remedy="Ask whether all parties run the same version and the same question.",
        )
    return rounds, length


def _in_words(lawful: Collection[int]) -> str:
    return " or ".join(str(length) for length in sorted(lawful))


def _refuse_strangers(came: Mapping[str, bytes], due: Collection[str]) -> None:
    if set(came) != set(due):
        wrong = sorted(set(came) ^ set(due))
        raise MessageRefused(
            f"letters of {', '.join(map(repr, wrong))} are missing or were not due.", remedy="Nothing was used."
        )


def _whole(name: str, parts: list[bytes], length: int) -> bytes:
    whole = parts[0] if len(parts) == 1 else b"".join(parts)
    if len(whole) != length:
        raise MessageRefused(
            f"a letter from {name!r} has {len(whole)} bytes and announced {length}.", remedy="It was not used."
        )
    return whole
