"""Waiting for something to happen, and never for time to pass.

On a busy machine everything comes late, so no verdict follows from seconds: a wait ends when what it waits for holds, and fails
when whoever has to bring it about has ended, or when nothing has moved for as long as no machine that still works is still.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 120.0
"""Seconds in which nothing moves, after which nothing will. No test that passes waits as long."""


def until(
    holds: Callable[[], Any],
    what: str = "what was waited for",
    *,
    moved: Callable[[], Any] = lambda: None,
    ended: Callable[[], Any] = lambda: False,
    pause: float = 0.01,
) -> None:
    """Wait until something holds.

    `moved` tells how far the work has come: whenever it tells something else than before, patience begins anew. `ended` tells
    that nobody works any more; what it says is shown.
    """
    last, end = moved(), time.monotonic() + PATIENCE
    while not holds():
        over, now = ended(), moved()
        if over and not holds():
            raise AssertionError(f"{what} did not come, and nobody is left to bring it: {over}")
        if now != last:
            last, end = now, time.monotonic() + PATIENCE
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come, and nothing has moved for {PATIENCE:g} s; at last: {last!r}")
        time.sleep(pause)
