"""Desks: what a party keeps of protocols with other parties. It never leaves the party, and no local function sees it.

A desk has entries by name, each a dict of arrays or bytes, such as the order of rows that an alignment agreed on, or the
secrets that a party shares with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Entry = Mapping[str, Any]
"""Arrays, bytes, whole numbers and texts by name."""


class Desk(Protocol):
    """What one party keeps."""

    def get(self, name: str) -> Entry | None:
        """The entry of a name, if there is one."""

    def put(self, name: str, entry: Entry) -> None:
        """Keep an entry in place of the one before."""


@dataclass
class MemoryDesk:
    """A desk in memory."""

    entries: dict[str, Entry] = field(default_factory=dict, repr=False)

    def get(self, name: str) -> Entry | None:
        return self.entries.get(name)

    def put(self, name: str, entry: Entry) -> None:
        self.entries[name] = entry


class Desks(dict[str, Desk]):
    """Desks of the parties of one process by name, made when they are first used."""

    def __missing__(self, id: str) -> Desk:
        self[id] = desk = MemoryDesk()
        return desk
