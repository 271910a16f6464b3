"""Pipes between peers: what one writes, long or short, the other reads in the same order, cut into letters.

    pipes.write(name, bytes)                    goes out with the next letters, at most LETTER bytes in each
    raw = yield from pipes.read(name, n)        waits until n bytes have come
    yield from pipes.flush()                    before a peer returns

So a protocol is written as if letters had any length, and a peer computes on the first piece while the next is under way.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from hedgerow.errors import MessageRefused

from ..peers import Letters

LETTER = 8 << 20
"""Most bytes of a letter."""

PATIENCE = 1 << 12
"""Rounds without any letter after which a peer gives up."""

Waiting = Generator[Letters, Mapping[str, bytes], None]
Read = Generator[Letters, Mapping[str, bytes], bytes]


class Pipes:
    """One peer's pipes to and from the others.

    Parameters
    ----------
    me : str
    others : tuple of str
        Whoever may write.
    """

    def __init__(self, me: str, others: tuple[str, ...]) -> None:
        self.me = me
        self._out = {name: bytearray() for name in others}
        self._in = {name: bytearray() for name in others}
        self._left = dict.fromkeys(others, LETTER)
        self._idle = 0

    def allow(self, name: str, n: int) -> None:
        """Let `name` send n bytes in all from now on; more are refused, so that nobody fills this party's memory."""
        self._left[name] = n

    def write(self, name: str, raw: bytes) -> None:
        """Send bytes to `name`."""
        self._out[name] += raw

    def read(self, name: str, n: int) -> Read:
        """Wait for the next n bytes from `name`."""
        came = self._in[name]
        while len(came) < n:
            yield from self.turn()
        raw = bytes(came[:n])
        del came[:n]
        return raw

    def flush(self) -> Waiting:
        """Wait until all that was written has gone."""
        while any(self._out.values()):
            yield from self.turn()

    def turn(self) -> Waiting:
        """Let all peers step once: send what waits, take what came."""
        letters = {}
        for name, waiting in self._out.items():
            if waiting:
                letters[name] = bytes(waiting[:LETTER])
                del waiting[:LETTER]
        came = yield letters
        for name, letter in came.items():
            if name not in self._in or not isinstance(letter, bytes) or len(letter) > LETTER:
                raise MessageRefused("a letter came from nobody who takes part, or is too long.")
            self._left[name] -= len(letter)
            if self._left[name] < 0:
                raise MessageRefused(f"{name} sent more than the protocol has it send.", remedy="Nothing more was read.")
            self._in[name] += letter
        self._idle = 0 if letters or came else self._idle + 1
        if self._idle > PATIENCE:
            raise MessageRefused("the others write nothing any more.", remedy="One of them has come to its end; see its log.")


def pieces(count: int, most: int) -> list[int]:
    """Split `count` elements into pieces of at most so many."""
    return [min(most, count - begun) for begun in range(0, count, most)]
