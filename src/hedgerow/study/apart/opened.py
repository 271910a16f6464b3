"""The federations of a run of parties with different columns, and what only a simulation knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.core.apart import PartiesApart
from hedgerow.core.federation import Federation, inside
from hedgerow.core.ledger import Ledger
from hedgerow.core.limits import Record
from hedgerow.core.randomness import Streams
from hedgerow.crypto.peer_protocol import Traffic
from hedgerow.data import Table
from hedgerow.errors import NotAligned

from ..build import engine_of
from .protocols import protocol_of
from .ready import BuiltApart


def aligned_of(built: BuiltApart, federation: Federation, before: Callable[[], Any] | None = None) -> Any:
    """What the program is given: the parties after their alignment, protected and within the budget; or as they are.

    `before` makes the handle of an alignment that the parties keep.
    """
    study = built.study
    assert study.alignment is not None
    if built.listing.takes == "apart":
        return federation
    aligned = before() if before is not None else federation.align(on=study.alignment.on, by=protocol_of(study.alignment))
    if study.budget is not None:
        aligned = aligned.within(study.budget.budget())
    noise = study.protection.mechanism
    return aligned if noise is None else aligned.protect(mechanism=noise.mechanism())


class OpenedStudy:
    """The parties of a run, aligned when a program is given them, and once more for each study that it begins anew.

    Parameters
    ----------
    record_at : callable, optional
        Gives the durable record of a federation's ledger, by how many were before it.

    Attributes
    ----------
    federations, handles : list
        The parties before their alignment, and what the program was given, in the order in which they were made.
    """

    def __init__(self, built: BuiltApart, threads: int | None = None, record_at: Callable[[int], Record] | None = None) -> None:
        self.built, self.threads, self.record_at = built, threads, record_at
        self.federations: list[Federation] = []
        self.handles: list[Any] = []
        self._common: tuple[Any, Mapping[str, Table]] | None = None

    @classmethod
    def at(cls, built: BuiltApart, federation: Federation, handle: Any) -> OpenedStudy:
        """Parties that are elsewhere, and what the program was given."""
        made = cls(built)
        made.federations, made.handles = [federation], [handle]
        return made

    def handle(self) -> Any:
        """What the program is given."""
        takes = self.built.listing.takes
        return self.anew if takes == "anew" else self.anew()

    def apart(self) -> Federation:
        """The parties with their own columns, before any alignment."""
        assert self.built.study.alignment is not None
        on = self.built.study.alignment.on
        held = {party: {**one.table.columns, on: one.ids} for party, one in self.built.held.items()}
        engine = engine_of(self.built.study.engine, self.threads)
        made = Federation(engine.hosting(PartiesApart(held)), None, Streams(self.built.study.simulation_seed))
        run = inside(made).run
        run.schemas = self.built.schemas
        if self.record_at is not None:
            run.ledger.attach(self.record_at(len(self.federations)))
            run.ledger.rewind(0, replay=False)
        self.federations.append(made)
        return made

    def anew(self) -> Any:
        """The parties after an alignment; each time as a study of its own."""
        self.handles.append(aligned_of(self.built, self.apart()))
        return self.handles[-1]

    def close(self) -> None:
        """End the engines' processes, where they have any."""
        for federation in self.federations:
            engine = inside(federation).run.engine
            if hasattr(engine, "close"):
                engine.close()

    # ---- what was asked, said and sent --------------------------------------------------------------------------------
    @property
    def ledger(self) -> Ledger:
        """The ledger; of several federations one with the entries of all, to read."""
        ledgers = [inside(one).run.ledger for one in self.federations]
        if len(ledgers) == 1:
            return ledgers[0]
        whole = Ledger(ledgers[0].limit if ledgers else None)
        whole.entries = [entry for one in ledgers for entry in one.entries]
        return whole

    @property
    def traffic(self) -> Sequence[Traffic]:
        """All letters."""
        found: list[list[Traffic]] = [inside(one).run.sessions.open.get(Traffic, []) for one in self.federations]
        return [one for letters in found for one in letters]

    @property
    def saw(self) -> Mapping[str, Sequence[str]]:
        """Who saw what in all of them, each sentence once."""
        found: dict[str, dict[str, None]] = {}
        for handle in self.handles:
            for role, said in getattr(handle, "saw", {}).items():
                found.setdefault(role, {}).update(dict.fromkeys(said))
        return {role: tuple(said) for role, said in found.items()}

    @property
    def engine(self) -> str:
        """The engine's name."""
        return type(inside(self.federations[0]).run.engine).__name__ if self.federations else "none"

    # ---- what only a simulation knows -----------------------------------------------------------------------------------
    @property
    def tests(self) -> Mapping[str, Table]:
        """Each party's columns of people who were held out, aligned; none where there are none."""
        return self.built.tests if self.here else {}

    @property
    def here(self) -> bool:
        """Whether this is a simulation whose parties are in this process."""
        return self.built.simulated and self._held is not None

    @property
    def common(self) -> Mapping[str, Table]:
        """Each party's columns of the common people, in the order of the latest alignment."""
        handle = self.handles[-1]
        if self._common is None or self._common[0] is not handle:
            self._common = handle, {party: one.table.take(self._rows(party)) for party, one in self.built.held.items()}
        return self._common[1]

    @property
    def _held(self) -> PartiesApart | None:
        """The parties of the latest federation, where they are in this process."""
        held = getattr(inside(self.federations[-1]).run.engine, "held", None)
        return held if isinstance(held, PartiesApart) else None

    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """What the parties of the latest federation keep."""
        held = self._here()
        return held.states.committed(inside(self.federations[-1]).run.counted)

    def column(self, party: str, name: str) -> np.ndarray:
        """A party's column in the order of the latest alignment."""
        found: np.ndarray = np.asarray(self.built.held[party].table[name])[self._rows(party)]
        return found

    def _rows(self, party: str) -> np.ndarray:
        entries = [one for key, one in self._entries(party) if key.startswith("alignment ") and "rows" in one]
        if not entries:
            raise NotAligned(f"{party} keeps no alignment.", remedy="Align the parties first.")
        return np.asarray(entries[-1]["rows"])

    def _entries(self, party: str) -> Iterator[tuple[str, Any]]:
        yield from getattr(self._here().desks[party], "entries", {}).items()

    def _here(self) -> PartiesApart:
        if self._held is None:
            raise NotAligned("the parties are in other processes.", remedy="Choose engine.name = 'in-process' or 'loop'.")
        return self._held
