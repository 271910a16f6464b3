"""The first question of a study's program, which is made and not asked: what is refused is refused before anybody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import handle, inside
from hedgerow.engines.acting import Acting

if TYPE_CHECKING:
    from .build import Built


class FirstQuestion(Exception):
    """The program asked its first question."""


@dataclass
class Nobody:
    """An engine that reaches parties by name and stops at the first question, which it refuses where liars could not lie."""

    parties: Sequence[str]
    acts: Acting | None = None
    unit: str | None = None
    """Of the bound of the first question, once it was asked; None without one."""

    def exchange(self, outbox: Outbox) -> Inbox:
        self.unit = outbox.release.unit
        if self.acts is not None:
            self.acts.refuse_unclipped(outbox)
        raise FirstQuestion


def first_unit(built: Built) -> str | None:
    """The unit of the bound of a program's first question, which is not asked; None without one."""
    values = inside(built.federation)
    nobody = Nobody(built.federation.names, getattr(values.run.engine, "acts", None))
    federation = handle(values._replace(run=values.run.afresh(nobody, ledger=built.unspent)))
    with suppress(FirstQuestion):
        next(iter(built.listing.program(built.settings)(federation)), None)
    return nobody.unit
