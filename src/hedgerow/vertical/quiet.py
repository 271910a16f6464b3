"""How an aligned handle asks where nothing leaves the parties in the clear: until a verb says its way, and at home."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.aggregation import Plain
from hedgerow.core.events import Event


@dataclass(frozen=True)
class Between(Plain):
    """How products travel until a verb says it: rows are hidden whatever the verb, so noise in shares is lawful."""

    name: str = "between parties"
    shows: str = "the server sees shares that look random, and totals"

    @property
    def hides_rows(self) -> bool:
        return True

    @property
    def largest(self) -> float | None:
        return 1.0


@dataclass(frozen=True)
class AtHome(Plain):
    """Parties compute and keep, and what follows from it is paid now."""

    name: str = "at home"
    shows: str = "the server sees nothing"
    charge: Event | None = None
