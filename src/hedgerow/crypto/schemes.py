"""The protocols that hide rows, as one aggregation sees them: both sides in one process, what they send, and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from hedgerow.core.conversation import Conversation, Correspondent
from hedgerow.core.mechanism import Sampler
from hedgerow.core.randomness import Entropy
from hedgerow.errors import KeyInvalid, UnlawfulChannel
from hedgerow.store import Answered

from . import pairwise, secagg
from .conversation import Total
from .fixedpoint import WholeEncoding
from .keys import Identity, Roster
from .proved_rows import proved_bytes
from .shares import AdditiveServer, AdditiveShares, Aggregator, AggregatorLink, Drawing, VerifiedServer
from .shares.making import aggregators_of, party_of
from .standing import StandingSet, StandingSets

SEED = 32
TAG = 16
SHARE = 35
"""Bytes of a seed, of an authentication tag, and of a packed share."""


@dataclass(frozen=True)
class Enrolment:
    """Both sides of a protocol: every party's, none where they are elsewhere, and the server's for those who are asked."""

    parties: Mapping[str, Correspondent]
    server: Callable[[tuple[str, ...]], Questions]
    aggregators: tuple[Aggregator, ...] = ()

    def draws(self, sampler: Sampler, entropies: Callable[[int], Entropy]) -> None:
        """Let the aggregators of this process draw the noise of a question from these bytes, each from its own."""
        for place, one in enumerate(self.aggregators):
            one.drawing = Drawing(sampler, partial(entropies, place))


@dataclass(frozen=True)
class PinnedAggregators:
    """Whom the parties of a study trust to add up their shares, all of them together with nothing.

    Attributes
    ----------
    keys : tuple of bytes
        Public agreement keys in order, had from elsewhere than the server.
    study : bytes
        Digest of the study as it was approved, and of its name.
    """

    keys: tuple[bytes, ...]
    study: bytes


class ReachedAggregators(Protocol):
    """The aggregators of one study, as its server reaches them."""

    @property
    def links(self) -> Sequence[AggregatorLink]:
        """In the order in which parties know them."""

    @property
    def digest(self) -> bytes:
        """Of the study as parties and aggregators know it."""

    def put(self, step: str, letters: Sequence[tuple[AggregatorLink, bytes]]) -> list[bytes]:
        """Put a step to several of them at once; RoundRefused (HR-241) where one is lost or refuses."""


@dataclass(frozen=True)
class Credentials:
    """What parties' sides need from outside a protocol, where each organisation makes its own.

    Attributes
    ----------
    roster : Roster, optional
        Everybody's identity, had from elsewhere than the server.
    identity : Callable[[str], Identity], optional
        Of each of the parties here.
    journal : Callable[[str], Answered], optional
        Opens what a party has answered; in memory if not given.
    standing : StandingSets, optional
        Of whom the exact totals of a study are, where its parties hold them to be the same; not in a simulation.
    aggregators : PinnedAggregators, optional
        Of additive shares.
    """

    roster: Roster | None = None
    identity: Callable[[str], Identity] | None = None
    journal: Callable[[str], Answered] | None = None
    standing: StandingSets | None = None
    aggregators: PinnedAggregators | None = None

    def standing_of(self, id: str) -> StandingSet | None:
        """The standing set of a party."""
        return None if self.standing is None else self.standing.of(id)

    def journal_of(self, id: str) -> Answered | None:
        """The journal of a party."""
        return None if self.journal is None else self.journal(id)


class AggregationScheme(Protocol):
    """A protocol with its settings, from which both sides are made."""

    @property
    def least(self) -> int:
        """The smallest cohort of which a party lets itself be added up."""

    @property
    def aggregators(self) -> int:
        """How many add up shares of rows; 0 without them."""

    @property
    def verified(self) -> bool:
        """Whether every row is proved to be within its bound."""

    @property
    def title(self) -> str:
        """The protocol in words."""

    @property
    def shows(self) -> str:
        """What the server sees, in words."""

    def bytes(self, numbers: float, parties: int, bits: int) -> float:
        """What a party sends for one question."""

    def together(self, parties: int) -> int:
        """How many of so many parties are in the smallest total that the server sees."""

    def enrol(self, ids: tuple[str, ...]) -> Enrolment:
        """Make both sides, in one process."""

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of these parties, where the server and others are elsewhere."""

    def asking(
        self, roster: Roster | None, aggregators: ReachedAggregators | None = None
    ) -> Callable[[tuple[str, ...]], Questions]:
        """Make the server's side for those who are asked, where they are elsewhere."""


def row_bytes(numbers: float, bits: int) -> float:
    """Bytes of a masked row."""
    return numbers * bits / 8


@dataclass(frozen=True)
class DoubleMasks:
    """SecAgg: masks between neighbours and one of each party's own, recovered from neighbours' shares."""

    settings: secagg.SecAgg
    verified = False

    @property
    def least(self) -> int:
        return self.settings.least

    @property
    def aggregators(self) -> int:
        return 0

    @property
    def title(self) -> str:
        return f"SecAgg{' (active server)' if self.settings.active else ''}"

    @property
    def shows(self) -> str:
        return "the server sees masked rows, each of which looks random, and their total"

    def bytes(self, numbers: float, parties: int, bits: int) -> float:
        """The row, a share for each neighbour, and this question's part of keys, shares and lists sent once an epoch."""
        k, _ = self.settings.degree(parties)
        rounds = self.settings.rounds_per_epoch
        once = SEED + k * (2 * rounds * SHARE + TAG) + rounds * (k * SEED + TAG + 2 * SEED)
        return row_bytes(numbers, bits) + k * SHARE + once / rounds

    def together(self, parties: int) -> int:
        """All: the server sees their total alone."""
        return parties

    def enrol(self, ids: tuple[str, ...]) -> Enrolment:
        roster, identities = None, dict[str, Identity]()
        if self.settings.active:
            identities = {id: Identity.fresh() for id in ids}
            roster = Roster({id: identity.public for id, identity in identities.items()})
        own = Credentials(roster, identities.__getitem__ if identities else None)
        return Enrolment(self.sides(ids, own), self.asking(roster))

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of these parties; they share what sets up faster together."""
        gateway, found = secagg.Gateway(), dict[str, Correspondent]()
        roster = own.roster if self.settings.active else None
        for id in ids:
            identity = own.identity(id) if self.settings.active and own.identity is not None else None
            journal, standing = own.journal_of(id), own.standing_of(id)
            found[id] = secagg.SecAggParty(id, self.settings, roster, identity, journal, gateway, standing)
        return found

    def asking(
        self, roster: Roster | None, aggregators: ReachedAggregators | None = None
    ) -> Callable[[tuple[str, ...]], Questions]:
        """Make the server's side."""
        if self.settings.active and roster is None:
            raise KeyInvalid(
                "a server that may lie was asked to add up rows, and there is no roster that pins identities.",
                remedy="Give stations and coordinator the same roster, or take adversary = 'curious'.",
            )
        return partial(self._server, roster if self.settings.active else None)

    def _server(self, roster: Roster | None, ids: tuple[str, ...]) -> Questions:
        return Questions(secagg.Server(self.settings, ids, roster), frozenset(ids))


@dataclass(frozen=True)
class GroupMasks:
    """Pairwise masks, in one group or in several."""

    settings: pairwise.PairwiseMasks
    verified = False

    @property
    def least(self) -> int:
        return self.settings.least

    @property
    def aggregators(self) -> int:
        return 0

    @property
    def title(self) -> str:
        among = "" if self.settings.group is None else f" (groups of {self.settings.group})"
        return f"pairwise-mask{among}"

    @property
    def shows(self) -> str:
        whose = "their total" if self.settings.group is None else "the total of each group"
        return f"the server sees masked rows, each of which looks random, and {whose}"

    def bytes(self, numbers: float, parties: int, bits: int) -> float:
        """The row and a key."""
        return row_bytes(numbers, bits) + SEED + pairwise.CHECK

    def together(self, parties: int) -> int:
        """A group, whose total the server sees."""
        return parties if self.settings.group is None else min(parties, self.settings.group)

    def enrol(self, ids: tuple[str, ...]) -> Enrolment:
        known = frozenset(ids)
        return Enrolment({id: pairwise.PairwiseParty(id, self.settings, known=known) for id in ids}, self._server)

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of these parties, for whom the others of a group are whom the server names."""
        return {
            id: pairwise.PairwiseParty(id, self.settings, journal=own.journal_of(id), standing=own.standing_of(id))
            for id in ids
        }

    def asking(
        self, roster: Roster | None, aggregators: ReachedAggregators | None = None
    ) -> Callable[[tuple[str, ...]], Questions]:
        """Make the server's side."""
        return self._server

    def _server(self, ids: tuple[str, ...]) -> Questions:
        return Questions(pairwise.PairwiseServer(self.settings, ids), frozenset(ids))


@dataclass(frozen=True)
class Shares:
    """Additive shares for a few aggregators: processes of their own organisations, or objects in a simulation."""

    settings: AdditiveShares

    @property
    def least(self) -> int:
        return self.settings.least

    @property
    def aggregators(self) -> int:
        return self.settings.aggregators

    @property
    def title(self) -> str:
        return f"additive-share ({self.settings.aggregators} aggregators{', verified' if self.settings.verified else ''})"

    @property
    def shows(self) -> str:
        proved = "; rows that are not proved to be within their bound are in no total, while all aggregators are honest"
        seen = "the server sees sealed letters and the total, each aggregator shares that look random"
        return seen + proved * self.settings.verified

    @property
    def verified(self) -> bool:
        return self.settings.verified

    def bytes(self, numbers: float, parties: int, bits: int) -> float:
        """The sealed correction, of verified rows with a proof of an l2 bound; other shares are made from keys."""
        if self.settings.verified and numbers >= 1:
            return proved_bytes(round(numbers), self.settings.aggregators) + TAG
        return row_bytes(numbers, bits) + TAG

    def together(self, parties: int) -> int:
        """All: the server sees their total alone."""
        return parties

    def enrol(self, ids: tuple[str, ...]) -> Enrolment:
        aggregators = tuple(aggregators_of(self.settings))
        keys = [one.public for one in aggregators]
        parties = {id: party_of(id, self.settings, keys) for id in ids}
        return Enrolment(parties, partial(self._server, aggregators), aggregators)

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of these parties, for the aggregators that they pinned; who is on a roster signs its keys."""
        if (known := own.aggregators) is None:
            raise _no_aggregators()
        found = dict[str, Correspondent]()
        for id in ids:
            roster = own.roster if own.roster is not None and own.identity is not None and id in own.roster else None
            identity = own.identity(id) if roster is not None and own.identity is not None else None
            how = {"roster": roster, "identity": identity, "journal": own.journal_of(id), "study": known.study}
            found[id] = party_of(id, self.settings, known.keys, **how)
        return found

    def asking(
        self, roster: Roster | None, aggregators: ReachedAggregators | None = None
    ) -> Callable[[tuple[str, ...]], Questions]:
        """Make the server's side, for aggregators that it reaches."""
        if aggregators is None:
            raise _no_aggregators()
        return partial(self._reaching, aggregators, roster)

    def _reaching(self, reached: ReachedAggregators, roster: Roster | None, ids: tuple[str, ...]) -> Questions:
        how = {"roster": roster, "study": reached.digest, "put": reached.put}
        return Questions(self._kind(self.settings, ids, reached.links, **how), frozenset(ids))

    @property
    def _kind(self) -> Any:
        return VerifiedServer if self.settings.verified else AdditiveServer

    def _server(self, aggregators: tuple[Aggregator, ...], ids: tuple[str, ...]) -> Questions:
        return Questions(self._kind(self.settings, ids, aggregators), frozenset(ids))


def _no_aggregators() -> UnlawfulChannel:
    return UnlawfulChannel(
        "additive shares need aggregators, and none is reached from here.",
        remedy="Between stations: aggregators = [...] of coordinator.toml. Between processes of one machine take SecAgg.",
    )


def shares_of(aggregation: Any) -> AdditiveShares | None:
    """The settings of an aggregation that splits rows among aggregators of their own organisations; None for others."""
    masks = getattr(aggregation, "masks", aggregation)
    scheme = getattr(masks, "scheme", None)
    return scheme.settings if isinstance(scheme, Shares) and masks.mode == "real" else None


def aggregators_needed(aggregation: Any) -> int:
    """Among how many aggregators of their own organisations an aggregation splits rows; 0 where it needs none."""
    settings = shares_of(aggregation)
    return 0 if settings is None else settings.aggregators


@dataclass
class Questions:
    """A server from question to question."""

    held: Any
    members: frozenset[str]

    def serves(self, ids: tuple[str, ...], members: tuple[str, ...]) -> bool:
        """Whether the members, asked together with others, are those of this server."""
        return self.members == frozenset(members)

    def question(
        self,
        ids: tuple[str, ...],
        encoding: WholeEncoding,
        context: bytes,
        least: int,
        steady: bool = False,
        noise: bytes = b"",
    ) -> Conversation[Total]:
        """One total, of `least` parties or more; a `steady` one over the same parties as others of the study.

        Aggregators add `noise` to it, if there are any.
        """
        how: dict[str, Any] = {"steady": True} if steady else {}  # asked of parties elsewhere alone
        how |= {"noise": noise} if noise else {}
        found: Conversation[Total] = self.held.total(ids, encoding, context, least, **how)
        return found
