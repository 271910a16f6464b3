"""Warnings kept back while made-up records are tried, also where several threads do so."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hedgerow.errors import HedgerowWarning

_turn = threading.RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings of Hedgerow; one thread at a time, since Python's filters are of the whole process."""
    with _turn, warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        yield
