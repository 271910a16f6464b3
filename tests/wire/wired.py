"""An engine between whose two halves everything is bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.crypto.aggregation import context_of
from hedgerow.engines import InProcess
from hedgerow.store.checkpoint import split
from hedgerow.wire.names import Names
from hedgerow.wire.question import answer, common, inbox, own, question

OWN = Names(("hedgerow", "test_every_program_travels"))


@dataclass
class Wired:
    """Carry questions to parties of this process as bytes, and their answers back."""

    held_by: Any = field(default_factory=partial(InProcess, threads=1))
    asked: list[bytes] = field(default_factory=list)

    def hosting(self, held: Any) -> "Wired":
        return replace(self, held_by=self.held_by.hosting(held))

    @property
    def parties(self) -> Sequence[str]:
        return self.held_by.parties

    @property
    def held(self) -> Any:
        return self.held_by.held

    def exchange(self, outbox: Outbox) -> Inbox:
        self.asked.append(common(outbox))
        found = question(self.asked[-1], own(outbox, outbox.ids), names=OWN)
        assert context_of(found.query, found.layout) == context_of(outbox.query, outbox.layout)
        assert common(Outbox(found.ids, found.query, found.step, outbox.protocol, found.layout, found.asked)) == self.asked[-1]
        there = Outbox(found.ids, found.query, found.step, outbox.protocol, found.layout, found.asked)
        return inbox(answer(self.held_by.exchange(there), found.ids), outbox.ids, outbox.query)


def numbers(state: Any) -> dict[str, Any]:
    """Everything numeric in a state."""
    arrays, plain = split(state)
    return {**{key: np.asarray(value) for key, value in arrays.items()}, **{k: v for k, v in plain.items() if v == v}}


def assert_same(one: Any, other: Any) -> None:
    """Two states are the same to the last bit."""
    one, other = numbers(one), numbers(other)
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(other[key], value, err_msg=key)
