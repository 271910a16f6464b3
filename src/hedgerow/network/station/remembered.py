"""The last answers of a station, sealed: the same letter again gets the very same bytes."""

from __future__ import annotations

from collections import OrderedDict

EACH = 16
"""Answers of each study that are kept."""

BYTES = 1 << 28
"""Of all answers that are kept; the latest is kept whatever its size."""


class Remembered:
    """Answers by the digest of the letter that they answer."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[str, bytes]] = OrderedDict()

    def answer(self, digest: bytes) -> bytes | None:
        """What a letter was answered, if that is remembered."""
        found = self._kept.get(digest)
        return None if found is None else found[1]

    def keep(self, study: str, digest: bytes, sealed: bytes) -> None:
        """Keep an answer, and forget old ones: of this study all but a few, and of all studies what is too much."""
        self._kept[digest] = study, sealed
        mine = [key for key, (whose, _) in self._kept.items() if whose == study]
        for key in mine[:-EACH]:
            del self._kept[key]
        total = sum(len(body) for _, body in self._kept.values())
        while total > BYTES and len(self._kept) > 1:
            total -= len(self._kept.popitem(last=False)[1][1])
