"""Peers: a protocol in which parties write to one another, each side a generator that never opens a socket.

    peer   yields the letters that it writes in a round, `{to whom: bytes}`, is sent those that came, `{from whom: bytes}`,
           and returns what it has learned

All peers write in every round, if only nothing. The server is a peer itself, by the name HUB, where it has a part of its own;
otherwise it carries letters and no more. Between parties letters are sealed end to end (`hedgerow.crypto.sealing`), so that
what the server carries are boxes of known size.

`meet` carries such a protocol out in one process, for tests and measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

from hedgerow.errors import MessageRefused

HUB = "hub"
"""The server's name among peers; no party may have it."""

Result = TypeVar("Result")
Letters = dict[str, bytes]
Peer = Generator[Letters, Mapping[str, bytes], Result]


def meet(peers: Mapping[str, Peer[Any]], carried: Callable[[str, str, bytes], None] | None = None) -> dict[str, Any]:
    """Carry a protocol out in this process, and return what each peer has learned.

    Parameters
    ----------
    peers : mapping from name to generator
    carried : callable, optional
        `(sender, recipient, letter)` learns of every letter.

    Raises
    ------
    MessageRefused (HR-242)
        A letter is for nobody who takes part, or for a peer that has come to its end.
    """
    results: dict[str, Any] = {}
    wrote = {name: letters for name, peer in peers.items() if (letters := _begun(name, peer, results)) is not None}
    while wrote:
        came: dict[str, Letters] = {name: {} for name in wrote}
        for sender, letters in wrote.items():
            for recipient, letter in letters.items():
                if recipient not in came or recipient == sender:
                    raise MessageRefused(f"{sender} wrote to {recipient!r}, who waits for no letter.")
                came[recipient][sender] = letter
                if carried is not None:
                    carried(sender, recipient, letter)
        wrote = {name: letters for name in wrote if (letters := _sent(name, peers[name], came[name], results)) is not None}
    return results


def _begun(name: str, peer: Peer[Any], results: dict[str, Any]) -> Letters | None:
    try:
        return next(peer)
    except StopIteration as end:
        results[name] = end.value
        return None


def _sent(name: str, peer: Peer[Any], came: Letters, results: dict[str, Any]) -> Letters | None:
    try:
        return peer.send(came)
    except StopIteration as end:
        results[name] = end.value
        return None
