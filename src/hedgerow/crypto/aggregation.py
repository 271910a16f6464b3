"""Aggregations that hide rows, as they go into a channel: `federation.protect(aggregation=SecAgg())`.

    SecAgg           masks with recovery on a sparse graph of neighbours: parties may drop out at any step
    PairwiseMasks    masks without recovery, in one group or several: the simple secure aggregation of the thesis
    AdditiveShares   shares for a few aggregators that do not collude

Each is a protocol of this room, the same in one process and between organisations. `mode="real"` carries it out, message
by message; `mode="simulated"` adds up rows in the open, as a simulation may, and accounts for what the protocol would send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.aggregation import Aggregation
from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import Contribution, Conversation, Correspondent, Sessions
from hedgerow.core.engine import Engine, Inbox, Outbox
from hedgerow.core.release import Release
from hedgerow.errors import (
    CohortTooSmall,
    MessageRefused,
    NobodyAnswered,
    RangeExceeded,
    RoundRefused,
    SettingsInvalid,
    UnlawfulChannel,
)

from . import pairwise, secagg, shares
from .cohort import numeric
from .context import context_of
from .conversation import Total
from .field_encoding import FieldEncoding, field_encoding_for, refuse_unprovable
from .fixedpoint import WORDS, RingEncoding, encoding_for
from .loose_proofs import RECORDS, warn_of_loose_proofs
from .schemes import AggregationScheme, Credentials, DoubleMasks, Enrolment, GroupMasks, Questions, Shares
from .shares.aggregator_noise import noise_words
from .simulated_totals import bytes_of, simulated_total

Mode = Literal["real", "simulated", "rehearsed"]


@dataclass(frozen=True)
class Hidden(Aggregation):
    """An aggregation of which the server learns the total alone.

    Parameters
    ----------
    scheme : AggregationScheme
        The protocol and its settings.
    bits : {16, 32, 64}
        Of a number on the wire. With 32 a total has a resolution of about 2^-31 of its range.
    records : float
        Largest sum of record weights at one party: times a bound per record, the range of its contribution.
    largest : float, optional
        Range of every number of a contribution that declares no bound.
    mode : {"real", "simulated", "rehearsed"}
        Carry the protocol out, or account for it; in a rehearsal, about made-up records and in the protocol's name.
    """

    scheme: AggregationScheme
    bits: int = 64
    records: float = RECORDS
    largest: float | None = None
    mode: Mode = "real"

    def __post_init__(self) -> None:
        numeric(records=self.records, largest=0.0 if self.largest is None else self.largest)
        if self.bits not in WORDS or self.mode not in get_args(Mode) or not self.records > 0:
            raise SettingsInvalid(
                f"bits={self.bits!r}, records={self.records!r}, mode={self.mode!r}.",
                remedy="bits: 16, 32 or 64; records above zero; mode: 'real' or 'simulated'.",
            )
        if self.scheme.verified and self.bits != 64:
            raise SettingsInvalid(
                f"verified rows of {self.bits} bits: they are numbers of a field of 64 bits.", remedy="Leave bits out."
            )
        if self.largest is not None and not 0 < self.largest < np.inf:
            raise SettingsInvalid(f"largest={self.largest!r} is no range.", remedy="A finite number above zero.")

    # ---- what the waist asks of an aggregation --------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return f"{self.scheme.title}{' (simulated)' if self.mode == 'simulated' else ''}"

    @property
    def hides_rows(self) -> bool:
        return True

    @property
    def shows(self) -> str:
        if self.mode == "simulated":
            proofs = ", no row was proved" if self.scheme.verified else ""
            return f"the protocol is accounted for and not carried out{proofs}; with it {self.scheme.shows}"
        return self.scheme.shows

    @property
    def verified(self) -> bool:
        return self.scheme.verified and self.mode != "simulated"

    def admit(self, noise_at: str | None) -> None:
        """Refuse noise that parties add to rows whose bounds are proved (HR-211)."""
        if self.scheme.verified:
            refuse_unprovable(noise_at)

    @property
    def least(self) -> int:
        return self.scheme.least

    @property
    def aggregators(self) -> int:
        return self.scheme.aggregators

    def together(self, parties: int) -> int:
        return self.scheme.together(parties)

    def rehearsed(self) -> Hidden:
        """The same without its protocol, for made-up records."""
        return replace(self, mode="rehearsed")

    def fit(self, outbox: Outbox) -> None:
        """Refuse, before anybody is asked, so few parties that a total would show their rows, or a total that does not fit.

        Raises
        ------
        CohortTooSmall (HR-240), RangeExceeded (HR-243)
        UnlawfulChannel (HR-211)
            The shape of the total is not known beforehand.
        """
        question, release, layout, parties = outbox.question, outbox.release, outbox.layout, len(outbox.ids)
        if parties < self.scheme.least:
            raise CohortTooSmall(
                f"{parties} parties, and {self.name} adds up {self.scheme.least} or more.",
                remedy="Ask more parties. Of one row a total hides nothing, of two each party could tell the other's.",
            )
        if self.scheme.together(parties) < release.least:
            raise CohortTooSmall(
                f"the server would see a total of {self.scheme.together(parties)} through {self.name}, and the noise of "
                f"{release.mechanism} is whole only with {release.least}.",
                remedy="Ask more parties, make larger groups, or rely on fewer: a smaller least=... adds more noise to each.",
            )
        if layout is not None:
            self.encoding(release, release.code(layout), parties)
        elif self.mode == "real":
            raise UnlawfulChannel(
                f"{question.name} goes through {self.name}, and the shape of its total is not known beforehand.",
                remedy="Give the federation a schema, and the local function a result of a fixed shape.",
            )

    def bytes(self, numbers: float, parties: int) -> float:
        """What each party sends for one question beside four bytes to a number."""
        sent: float = self.scheme.bytes(numbers, parties, self.bits)
        return sent - 4.0 * numbers

    def bytes_down(self, numbers: float) -> float:
        """What each party is sent of a broadcast: as it is."""
        return 4.0 * numbers

    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Put a sum to the parties of an outbox, and return what the server learns: the total, and who is in it.

        Raises
        ------
        RoundRefused (HR-241)
            The protocol ended without a total.
        """
        question, release, ids = outbox.question, outbox.release, tuple(outbox.ids)
        warn_of_loose_proofs(release, self.records, self.scheme.verified)
        if self.mode != "real":
            proves = self.scheme.verified and self.mode == "simulated"
            inbox = engine.exchange(replace(outbox, keep_rows=True) if proves else outbox)
            encoding = self.encoding(release, release.code(inbox.layout), len(ids)) if proves and inbox.layout else None
            least = max(self.scheme.least, release.least)
            return simulated_total(inbox, outbox, encoding if isinstance(encoding, FieldEncoding) else None, least)
        assert outbox.layout is not None  # `fit` refused it
        code = release.code(outbox.layout)
        encoding, noise = self.encoding(release, code, len(ids)), noise_words(release, code, self.aggregators)
        if self not in sessions.open:
            sessions.open[self] = AggregationSession(self, enrolment(self.scheme, engine))
        session: AggregationSession = sessions.open[self]
        server = session.server(ids, tuple(engine.parties) if question.cohort.sampling.kind == "all" else ids)
        if noise and release.mechanism is not None:
            session.enrolment.draws(release.mechanism.sampler, partial(bytes_of, outbox))
        steady = steadily(outbox) and getattr(engine, "has_owners", False)  # a simulated drop-out is nobody's
        conversation = server.question(ids, encoding, context_of(outbox, outbox.layout), release.least, steady, noise)
        carried = carry(conversation, engine, outbox, session)
        found: Total = carried.result
        rows = np.stack([found.masked[name] for name in found.counted]) if outbox.keep_rows and found.masked else None
        return Inbox(
            found.counted,
            outbox.layout,
            total=encoding.decode(found.total),
            rows=rows,
            masked=True,
            codes=carried.codes,
            sent=carried.sent,
            refused=found.refused,
            proved=getattr(encoding, "said", ""),
        )

    def encoding(self, release: Release, layout: Layout, parties: int) -> RingEncoding | FieldEncoding:
        """How contributions become integers of the ring, or of the field in which they are proved."""
        if self.scheme.verified:
            among = self.scheme.aggregators
            return field_encoding_for(
                release, layout, parties=parties, aggregators=among, records=self.records, largest=self.largest
            )
        return encoding_for(release, layout, parties=parties, bits=self.bits, records=self.records, largest=self.largest)

    def sides(self, ids: tuple[str, ...], own: Credentials) -> Mapping[str, Correspondent]:
        """Make the sides of parties, where the server is elsewhere."""
        return self.scheme.sides(ids, own)

    def contribution(self, outbox: Outbox, layout: Layout) -> Callable[[Array], Contribution]:
        """Return the function by which a party hands its row to its correspondent; by what the party itself was sent."""
        code, least = outbox.release.code(layout), outbox.release.least
        encoding, noise = self.encoding(outbox.release, code, outbox.asked), noise_words(outbox.release, code, self.aggregators)
        about, steady = context_of(outbox, layout), steadily(outbox)
        return partial(Contribution, code, encoding=encoding, context=about, least=least, steady=steady, noise=noise)

    def __str__(self) -> str:
        return self.name


def enrolment(scheme: AggregationScheme, engine: Engine) -> Enrolment:
    """Both sides of a protocol; the server's alone where an engine's parties and `aggregators` are elsewhere."""
    if getattr(engine, "elsewhere", False):
        return Enrolment({}, scheme.asking(getattr(engine, "roster", None), getattr(engine, "aggregators", None)))
    return scheme.enrol(tuple(engine.parties))


@dataclass(frozen=True)
class Side:
    """The parties' part of an aggregation where the server is elsewhere: a `Correspondence` for a host's engine."""

    aggregation: Any
    own: Credentials = field(default_factory=Credentials, compare=False)

    @property
    def of_peers(self) -> bool:
        return bool(getattr(self.aggregation, "of_peers", False))

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        """Every party's side, with its own credentials."""
        found: Mapping[str, Correspondent] = self.aggregation.sides(ids, self.own)
        return found

    def contribution(self, outbox: Outbox, layout: Layout) -> Any:
        """Return the function by which a party hands its row to its correspondent."""
        return self.aggregation.contribution(outbox, layout)


@dataclass(eq=False)
class AggregationSession:
    """An aggregation in use: what an engine needs of it, and the server's side from question to question."""

    aggregation: Hidden
    enrolment: Enrolment
    _server: Questions | None = None

    def server(self, ids: tuple[str, ...], members: tuple[str, ...]) -> Questions:
        """The server's side for a cohort: the one in use if it serves these, else one for the members."""
        if self._server is None or not self._server.serves(ids, members):
            self._server = self.enrolment.server(members)
        return self._server

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        """Every party's side, in one process."""
        return self.enrolment.parties

    def contribution(self, outbox: Outbox, layout: Layout) -> Callable[[Array], Contribution]:
        """Return the function by which a party hands its row to its correspondent."""
        return self.aggregation.contribution(outbox, layout)


@dataclass(frozen=True)
class Carried:
    """What came of a conversation, the codes of refusals, and the letters that parties were sent (where views are kept)."""

    result: Any
    codes: Mapping[str, str]
    sent: tuple[tuple[str, str, bytes], ...]


def carry(conversation: Conversation[Any], engine: Engine, outbox: Outbox, protocol: Any) -> Carried:
    """Carry a conversation about a question to its end, through an engine.

    Raises
    ------
    RoundRefused (HR-241), NobodyAnswered (HR-220)
        With the codes of the parties that refused.
    """
    codes, sent = dict[str, str](), list[tuple[str, str, bytes]]()
    named = replace(outbox.question, local=outbox.question.function, broadcast=None, bound=None, view=(), init=None)
    brief = replace(outbox, question=named, release=Release(), counted={}, layout=None)
    try:
        step = next(conversation)
        while True:
            if outbox.keep_rows:
                sent += [(party, step.name, letter) for party, letter in step.letters.items()]
            about = outbox if step.contributes else brief  # the other steps need no broadcast
            inbox = engine.exchange(replace(about, ids=tuple(step.letters), step=step, protocol=protocol))
            codes |= inbox.codes
            step = conversation.send(inbox.letters)
    except StopIteration as end:
        return Carried(end.value, codes, tuple(sent))
    except (RoundRefused, NobodyAnswered) as refusal:
        if not codes:
            raise
        told = ", ".join(f"{code} ({n})" for code, n in sorted(_times(codes).items()))
        remedy = _remedy(codes, refusal.remedy)
        raise type(refusal)(f"{refusal.reason} Parties refused: {told}.", remedy=remedy) from refusal


def _remedy(codes: Mapping[str, str], otherwise: str) -> str:
    """What helps where parties refused; to ask again does not."""
    if RangeExceeded.code in codes.values():
        return "Declare wider ranges, a larger `largest`, or more records to a party: records=... of the aggregation."
    if MessageRefused.code in codes.values():
        return "Parties will not answer this: see their logs. A limit of rounds may be reached, or settings differ."
    return otherwise


def _times(codes: Mapping[str, str]) -> dict[str, int]:
    return dict(Counter(codes.values()))


def steadily(outbox: Outbox) -> bool:
    """Whether such totals are over the same parties: no noise of parties hides one in them, or it is used up."""
    steady = outbox.worn or not outbox.release.hides_parties
    return steady and outbox.question.cohort.sampling.kind in ("all", "records", "part", "dealt")


def _chosen(scheme: AggregationScheme, bits: int, records: float, largest: float | None, mode: Mode) -> Hidden:
    """An aggregation that is carried out, or simulated by name."""
    if mode == "rehearsed":
        raise SettingsInvalid("mode='rehearsed' is for made-up records alone.", remedy="mode: 'real' or 'simulated'.")
    return Hidden(scheme, bits, records, largest, mode)


def SecAgg(
    *,
    bits: int = 64,
    records: float = 2.0**20,
    largest: float | None = None,
    mode: Mode = "real",
    least: int = 3,
    neighbours: int | None = None,
    threshold: int | None = None,
    corrupt: float = 0.05,
    dropouts: float = 0.1,
    adversary: Literal["curious", "active"] = "curious",
    rounds_per_epoch: int = 16,
    once_per_context: bool = False,
) -> Hidden:
    """Secure aggregation that survives dropouts; parameters as `hedgerow.crypto.secagg.SecAgg` and `Hidden`."""
    given = (neighbours, threshold, least, corrupt, dropouts, adversary, rounds_per_epoch, bits, once_per_context)
    settings = secagg.SecAgg(*given)
    return _chosen(DoubleMasks(settings), bits, records, largest, mode)


def PairwiseMasks(
    *,
    bits: int = 64,
    records: float = 2.0**20,
    largest: float | None = None,
    mode: Mode = "real",
    least: int = 3,
    group: int | None = None,
) -> Hidden:
    """Pairwise masks without recovery; parameters as `hedgerow.crypto.pairwise.PairwiseMasks` and `Hidden`."""
    return _chosen(GroupMasks(pairwise.PairwiseMasks(group, least)), bits, records, largest, mode)


def AdditiveShares(
    *,
    bits: int = 64,
    records: float = 2.0**20,
    largest: float | None = None,
    mode: Mode = "real",
    least: int = 3,
    aggregators: int = 3,
    verified: bool = False,
) -> Hidden:
    """Shares for aggregators that do not collude; parameters as `hedgerow.crypto.shares.AdditiveShares` and `Hidden`.

    With `verified` each row goes with a proof that it is within its bound, and one that is not is left out.
    """
    settings = shares.AdditiveShares(aggregators, least, verified=verified)
    return _chosen(Shares(settings), bits, records, largest, mode)
