"""Models that parties do not see, as an aggregation: `federation.protect(aggregation=PrivFL())`.

A question whose local function takes a `grid` is asked with its broadcast encrypted: parties compute terms without it, and
the server gets the total of what the terms make of it. Its bound is withheld as well, for it may tell of the broadcast.
Questions without a broadcast go through the sum of masks as they are; others are refused, since parties would see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.aggregation import Aggregation
from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import Contribution, Conversation, Correspondent, Sessions
from hedgerow.core.engine import Engine, Inbox, Outbox
from hedgerow.errors import SettingsInvalid, UnboundedSum, UnlawfulChannel

from . import privfl
from .aggregation import Hidden, SecAgg, carry, enrolment, steadily
from .context import context_of
from .conversation import Total
from .schemes import Credentials


@dataclass(frozen=True)
class HiddenModel(Aggregation):
    """An aggregation that hides rows from the server and the broadcast from parties.

    Parameters
    ----------
    settings : hedgerow.crypto.privfl.PrivFL
    masks : Hidden
        How masks are added up, and every sum without a model.
    """

    settings: privfl.PrivFL
    masks: Hidden

    def __post_init__(self) -> None:
        if self.masks.scheme.verified:
            raise SettingsInvalid(
                "masks of a hidden model are uniform numbers, and no bound of them could be proved.",
                remedy="Leave verified out, or the hidden model.",
            )
        if self.masks.bits != 64 or self.masks.scheme.least < self.settings.least:
            raise SettingsInvalid(
                f"masks of {self.masks.bits} bits and {self.masks.scheme.least} parties or more, for a hidden model of "
                f"{self.settings.least} or more.",
                remedy="Masks have 64 bits, and it is they by which parties refuse a small cohort: give them that `least`.",
            )

    # ---- what the waist asks of an aggregation --------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return f"PrivFL over {self.masks.name}"

    @property
    def hides_rows(self) -> bool:
        return True

    @property
    def shows(self) -> str:
        return f"parties see the model as ciphertexts; {self.masks.shows}"

    @property
    def hides_model(self) -> bool:
        """Whether parties compute without the broadcast."""
        return True

    @property
    def records(self) -> float:
        """Largest sum of record weights at one party."""
        return self.masks.records

    @property
    def largest(self) -> float | None:
        return self.masks.largest

    def together(self, parties: int) -> int:
        """As of the masks."""
        return self.masks.together(parties)

    def rehearsed(self) -> HiddenModel:
        """The same without its protocol, for made-up records."""
        return replace(self, masks=self.masks.rehearsed())

    def carrying(self, outbox: Outbox) -> HiddenModel | Hidden:
        """The masks alone, for a question without a model."""
        plain = outbox.question.broadcast is None and "grid" not in outbox.question.settings
        return self.masks if plain and outbox.release.bare else self

    def fit(self, outbox: Outbox) -> None:
        """Refuse, before anybody is asked, what would show rows, has no fixed point, or is not protected by totals alone."""
        question, settings = outbox.question, outbox.question.settings
        if not outbox.release.bare:
            raise UnlawfulChannel(
                f"{self.name} hides the terms of a gradient, which a clip, a compression or noise would have to see.",
                remedy="Protect the released model instead, or take SecAgg, with which all of them go.",
            )
        if question.broadcast is not None and "grid" not in settings:
            raise UnlawfulChannel(
                f"{question.name} goes through {self.name}, and its broadcast would be shown to parties.",
                remedy="Ask what may be shown through another handle: standardise(federation.protect(aggregation=SecAgg())).",
            )
        if "grid" in settings and settings["grid"] is None:
            raise UnboundedSum(
                f"{question.name} makes whole numbers of its terms, and a column declares no range.",
                remedy="Declare it: [data] ranges = { age = [18, 90] }.",
            )
        self.masks.fit(outbox)

    def bytes(self, numbers: float, parties: int) -> float:
        """What each party sends for one gradient beside four bytes to a number: ciphertexts, and limbs of their masks."""
        ciphertexts = -(-numbers // privfl.Slots(1 << (self.settings.bits - 1)).each)
        limbs = ciphertexts * privfl.Limbs(1 << (self.settings.bits - 1), parties).count
        return self.masks.scheme.bytes(limbs, parties, 64) + ciphertexts * self.settings.bits / 4 - 4.0 * numbers

    def bytes_down(self, numbers: float) -> float:
        """What each party is sent of a model: a ciphertext for each number."""
        return numbers * self.settings.bits / 4

    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Put a sum to parties that do not see the broadcast.

        Raises
        ------
        RoundRefused (HR-241)
            The protocol ended without a total.
        """
        question, ids = outbox.question, tuple(outbox.ids)
        grid = question.settings.get("grid")
        if grid is None or self.masks.mode != "real":
            return self.masks.ask(engine, outbox, sessions)
        if self not in sessions.open:
            sessions.open[self] = ModelSession.of(self, engine)
        session: ModelSession = sessions.open[self]
        sent, steady = withheld(outbox), steadily(outbox) and getattr(engine, "has_owners", False)
        conversation = session.question(ids, np.asarray(question.broadcast, dtype=np.float64), grid, context_of(sent), steady)
        carried = carry(conversation, engine, sent, session)
        found: Total = carried.result
        rows = np.stack([found.masked[name] for name in found.counted]) if outbox.keep_rows else None
        return Inbox(
            found.counted,
            outbox.layout or Layout((("", (grid.size,)),)),
            total=grid.decode(found.total),
            rows=rows,
            masked=True,
            codes=carried.codes,
            sent=carried.sent,
            withheld=True,
        )

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of parties, where the server is elsewhere."""
        inner = self.masks.sides(ids, own)
        return {id: privfl.PrivFLParty(id, self.settings, inner[id], journal=own.journal_of(f"{id}/model")) for id in ids}

    def contribution(self, outbox: Outbox, layout: Layout) -> Callable[[Array], Contribution]:
        """Return the function by which a party hands its terms to its correspondent; a plain row where no model is hidden."""
        if "grid" not in outbox.question.settings:
            return self.masks.contribution(outbox, layout)
        grid, steady = outbox.question.settings["grid"], steadily(outbox)
        return partial(Contribution, layout, encoding=grid, context=context_of(outbox), steady=steady)

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class ModelSession:
    """Both sides, from question to question; the server's alone where parties are elsewhere."""

    aggregation: HiddenModel
    parties: Mapping[str, Correspondent]
    server: privfl.PrivFLServer

    @classmethod
    def of(cls, aggregation: HiddenModel, engine: Engine) -> ModelSession:
        """Enrol everybody for the sum of masks, and put the hidden model before it."""
        settings, ids = aggregation.settings, tuple(engine.parties)
        both = enrolment(aggregation.masks.scheme, engine)
        parties = {id: privfl.PrivFLParty(id, settings, inner) for id, inner in both.parties.items()}
        return cls(aggregation, parties, privfl.PrivFLServer(settings, ids, both.server(ids).held))

    def question(self, ids: tuple[str, ...], theta: Array, grid: Any, context: bytes, steady: bool) -> Conversation[Total]:
        """One total, behind the key where a party has not accepted it yet."""
        if missing := [id for id in ids if id not in self.server.ready]:
            yield from self.server.open(missing)
        found: Total = yield from self.server.total(ids, theta, grid, context, steady)
        return found

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        """Every party's side, in one process."""
        return self.parties

    def contribution(self, outbox: Outbox, layout: Layout) -> Callable[[Array], Contribution]:
        """Return the function by which a party hands its terms to its correspondent."""
        return self.aggregation.contribution(outbox, layout)


def withheld(outbox: Outbox) -> Outbox:
    """A question as parties get it: without its broadcast, and without a bound that may have been made from it."""
    question = replace(outbox.question, broadcast=None, bound=None)
    return replace(outbox, question=question, release=replace(outbox.release, bounds=None))


def PrivFL(
    *,
    key_bits: int = 3072,
    most_rounds: int = 1000,
    least: int = 3,
    records: float = 2.0**20,
    largest: float | None = None,
    corrupt: float = 0.05,
    dropouts: float = 0.1,
    masks: Hidden | None = None,
) -> HiddenModel:
    """Gradients of a model that parties do not see; parameters as `hedgerow.crypto.privfl.PrivFL` and `SecAgg`."""
    inner = masks or SecAgg(least=least, records=records, largest=largest, corrupt=corrupt, dropouts=dropouts)
    return HiddenModel(privfl.PrivFL(key_bits, most_rounds, least), inner)
