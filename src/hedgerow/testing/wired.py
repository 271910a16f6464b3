"""An engine between whose two halves everything is bytes, as it is between a coordinator and its stations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.crypto.context import context_of
from hedgerow.engines import InProcess
from hedgerow.wire.names import HEDGEROW, Names
from hedgerow.wire.question import answer, common, inbox, own, question


@dataclass
class Wired:
    """Carry questions to parties of this process as bytes, and their answers back.

    Parameters
    ----------
    names : Names
        Packages whose functions a question may name, as a station's guard lists them.
    """

    names: Names = HEDGEROW
    held_by: Any = field(default_factory=partial(InProcess, threads=1))
    asked: list[bytes] = field(default_factory=list)

    def hosting(self, held: Any) -> Wired:
        """The same, with these parties."""
        return replace(self, held_by=self.held_by.hosting(held))

    @property
    def parties(self) -> Sequence[str]:
        return self.held_by.parties  # type: ignore[no-any-return]

    @property
    def held(self) -> Any:
        return self.held_by.held

    def exchange(self, outbox: Outbox) -> Inbox:
        """Write a question, read it, let it be answered, and do the same with the answer."""
        self.asked.append(common(outbox))
        found = question(self.asked[-1], own(outbox, outbox.ids), names=self.names)
        there = replace(found.outbox, protocol=outbox.protocol)
        assert context_of(there, there.layout) == context_of(outbox, outbox.layout)
        assert common(there) == self.asked[-1]
        return inbox(answer(self.held_by.exchange(there), found.ids), outbox.ids, outbox)
