"""The line to the coordinator, as the console page tells of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any


class Contact:
    """When the coordinator was heard last, and whether it is connected, as far as the rail can tell.

    Parameters
    ----------
    link : Link, optional
        The station's end of its rail; asked for `connected`, where it has that.
    now : callable
        Universal time.
    """

    def __init__(self, link: Any = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._link, self.now = link, now
        self.since = now()
        self.heard: datetime | None = None

    @property
    def connected(self) -> bool | None:
        """None where the rail cannot tell."""
        found = getattr(self._link, "connected", None)
        return None if found is None else bool(found)

    def listening(self, receive: Callable[[bytes], bytes | None]) -> Callable[[bytes], bytes | None]:
        """`receive`, which notes besides when a letter came that was the coordinator's: no other is answered."""

        def listen(raw: bytes) -> bytes | None:
            reply = receive(raw)
            if reply is not None:
                self.heard = self.now()
            return reply

        return listen
