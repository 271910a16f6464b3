"""Contexts: digests of questions, by which parties know that all of them were asked the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.core.engine import Outbox

from .messages import digest


def context_of(outbox: Outbox, layout: Layout | None = None) -> bytes:
    """Digest of a question as a party received it, 32 bytes: its number, function, settings, broadcast, and protection.

    With the layout of the contributions, also of their keys and shapes: what is added up has the same meaning everywhere.
    """
    question, cohort = outbox.question, outbox.question.cohort
    place = (question.branch, question.number, cohort.sampling, cohort.number)
    about = (*place, question.name, question.settings, question.view, question.init)
    return digest(
        "question",
        description_digest(about),
        description_digest((outbox.release, layout)),
        description_digest(question.broadcast),
    )


def description_digest(value: Any) -> bytes:
    """Digest of a value, the same for values that compute the same: arrays to the last bit, objects by their fields.

    Objects that go along with thousands of questions keep theirs, as `digested`.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        return digest("array", f"{value.dtype.str}{value.shape}".encode(), np.ascontiguousarray(value).tobytes())
    if isinstance(value, Mapping):
        return digest("mapping", *(description_digest(part) for item in sorted(value.items(), key=_by_name) for part in item))
    if isinstance(value, (tuple, list)):
        return digest("several", *map(description_digest, value))
    if isinstance(value, partial):
        return digest("partial", description_digest((value.func, value.args, value.keywords)))
    kind = f"{type(value).__module__}:{type(value).__qualname__}"
    if is_dataclass(value) and not isinstance(value, type):
        if isinstance(kept := getattr(value, "digested", None), bytes):
            return kept
        told = (of.name for of in fields(value) if of.metadata.get("told", True))  # the others stay at the server
        return digest("object", kind.encode(), *(description_digest((name, getattr(value, name))) for name in told))
    if callable(value) and hasattr(value, "__qualname__"):
        return digest("function", f"{value.__module__}:{value.__qualname__}".encode())
    return digest("value", kind.encode(), repr(value).encode())


def _by_name(item: tuple[Any, Any]) -> str:
    return str(item[0])
