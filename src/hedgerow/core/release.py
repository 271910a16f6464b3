"""Releases: what the channel makes of one question, at the parties and at the server, and what that costs.

One object couples the facts of a private release: the bound that is enforced, the mechanism that takes its noise from that
bound, the event that states exactly that noise, and the half that each side carries out.

    close    at a party    clip, code, round to the grid, add the party's noise
    open     at the server add the server's noise, decode, return to units

Noise at aggregators is in neither half: they add it to their totals, as the aggregation tells them (`hedgerow.crypto.shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.errors import ContributionInvalid

from .arrays import Array, Layout
from .bound import SLACK, Bounds, blocks, unit_of
from .disclosure import covers
from .events import Event, Sampling, Unit
from .mechanism import Compression, Mechanism, Plan
from .randomness import Entropy, Stream, Streams
from .state import State

LOST = "lost in compression by "
"""Key of a party's state, with the name of the question: what a compression that remembers has left out so far."""


@dataclass(frozen=True)
class Release:
    """The protection of one question; made by `Channel.release`.

    Attributes
    ----------
    clip : Bound or dict of Bound, optional
        Enforced at the party.
    bounds : Bound or dict of Bound, optional
        From which noise is scaled: the clip, or what the program declared.
    mechanism : Mechanism, optional
    compression : Compression, optional
    plan : Plan, optional
        Of a local function that is private in itself.
    public_seed : int
        Of the randomness that a compression shares with all parties.
    cites : int
        Number of the question whose charge covers this one; 0 where this one is charged itself.
    """

    clip: Bounds | None = None
    bounds: Bounds | None = None
    mechanism: Mechanism | None = None
    compression: Compression | None = None
    plan: Plan | None = None
    public_seed: int = 0
    cites: int = 0

    # ---- what it costs ----------------------------------------------------------------------------------------------
    @property
    def event(self) -> Event:
        """The cost; of a question that cites another, the cost of what both share."""
        if self.plan is not None:
            return self.plan.event()
        return Event("nonprivate") if self.mechanism is None or self.bounds is None else self.mechanism.event(self.bounds)

    def events_of(self, parties: Iterable[str]) -> dict[str, Event]:
        """The costs at those of some parties whose own noise makes it another than `event`."""
        if self.plan is None or not self.tells_parties_apart:
            return {}
        most = self.event
        return {name: event for name in parties if (event := self.plan.event_of(name)) != most}

    @property
    def tells_parties_apart(self) -> bool:
        """Whether its plan knows what it costs each party."""
        return self.plan is not None and type(self.plan).event_of is not Plan.event_of

    @property
    def unit(self) -> Unit | None:
        if self.plan is not None:
            return self.plan.unit
        return None if self.bounds is None else unit_of(self.bounds)

    @property
    def source(self) -> Mechanism | Plan | None:
        """What makes the noise."""
        return self.mechanism if self.plan is None else self.plan

    @property
    def key(self) -> str | None:
        """Names what this question shares with others; None where it stands alone."""
        return None if self.source is None else self.source.key

    @property
    def covered(self) -> bool:
        """Whether the charge of an earlier question with this key covers this one."""
        return self.source is not None and self.source.covered

    # ---- who sees what ----------------------------------------------------------------------------------------------
    @property
    def bare(self) -> bool:
        """Whether contributions leave as they are."""
        return self.clip is None and self.mechanism is None and self.compression is None

    @property
    def by_itself(self) -> bool:
        """Whether a party's row must be a function of its own data, the broadcast and its own randomness, to the last bit.

        So it is wherever noise pays for a bound per party. Computed together, a party's presence changes last bits of the
        others' rows; a last bit may decide a ReLU, and then every other row moves by up to twice the bound. The same holds for
        noise at the party: its row is paid for by its own noise, but in the others' rows its data would be paid for by nobody.
        Engines therefore ask each party alone: no stack, no padding, no pooled records, one thread, and arrays at places in
        memory that do not depend on the others.

        A bound per record is another matter. What one record adds has to be made of that record alone, inside a party as well,
        and in whole steps (`Bound.step`), which add up to the same total however parties are taken together.
        """
        if self.plan is not None:
            return True
        return self.mechanism is not None and self.bounds is not None and unit_of(self.bounds) == "party"

    @property
    def before_server(self) -> bool:
        """Whether the noise is there before the server sees a number, so that it need not be trusted with any.

        So it is where parties add it, each by itself or in shares, and where aggregators do: the server sees their total with
        the noise of each, and an aggregator shares that look random. The server then is one of those who are kept from what
        noise hides, and it knows whom it asks: that a party was drawn protects nobody, and a cohort of parties is charged as
        if everybody had been asked, who answers zeros where it has nothing. For the same reason a cohort without anybody needs
        no noise, and none is added to it.
        """
        return self.plan is not None or (self.mechanism is not None and self.mechanism.at != "server")

    def shows_cohort(self, sampling: Sampling) -> bool:
        """Whether somebody whom the noise keeps out sees who is in such a cohort, so that being drawn amplifies nothing.

        Samples of records are drawn by each party, who tells nobody.
        """
        return self.before_server and sampling.kind != "records"

    @property
    def random(self) -> bool:
        """Whether noise that is worth its name is there before the server sees a number, so that it learns no exact one.

        A question that is asked again has other noise then: the mean of many answers is nearly exact, and stations limit how
        often it is asked. Of noise at aggregators that holds although the parties' own rows are exact: nobody sees their total.
        """
        return self.before_server and covers(self.event)

    @property
    def hides_parties(self) -> bool:
        """Whether that noise hides what one party adds, also between totals of two sets of parties.

        Noise of a bound per record hides a record there, and not a party: the difference of two such totals is its row, but
        for the noise of one record. Of many totals the mean tells what noise hides in one (`Outbox.worn`). Each total through
        aggregators has the whole noise of each of them, drawn anew, whoever is in it: totals of changing parties are lawful as
        with noise in shares, no set has to stand (`hedgerow.crypto.standing`), and none is too small for the noise.
        """
        return self.random and self.unit == "party"

    @property
    def least(self) -> int:
        """Parties whose shares make the whole noise, so that nobody may see a total of fewer; 0 where noise is not shared."""
        return self.mechanism.least if self.mechanism is not None and self.mechanism.at == "shares" else 0

    @property
    def noise(self) -> str:
        """The mechanism in words."""
        return str(self.mechanism or "none") if self.plan is None else f"{self.plan} at the party"

    # ---- sizes ------------------------------------------------------------------------------------------------------
    def code(self, layout: Layout) -> Layout:
        """Keys and shapes of what leaves a party."""
        return layout if self.compression is None else self.compression.code(layout)

    def bytes(self, layout: Layout) -> float:
        """Size of what leaves a party, with 32 bits to a number that is not compressed."""
        if self.mechanism is not None and self.bounds is not None and self.compression is None:
            return self.mechanism.bytes(self.bounds, layout)
        return 4.0 * layout.size if self.compression is None else self.compression.wire_bits(layout) / 8

    def fit(self, layout: Layout) -> None:
        """Refuse, before anybody is asked, a contribution that clip, bounds or noise do not fit."""
        layout = self.code(layout)
        for bounds in (self.clip, self.bounds):
            if bounds is not None:
                blocks(bounds, layout)
        if self.mechanism is not None and self.bounds is not None:
            self.mechanism.fit(self.bounds, layout)

    # ---- the party's half -------------------------------------------------------------------------------------------
    def close(self, rows: Array, layout: Layout, entropies: Callable[[int], Entropy], coded: Coding | None = None) -> Array:
        """Turn contributions of shape (parties, size) into what leaves the parties.

        Parameters
        ----------
        entropies : callable
            The byte source of each row's party, for its noise.
        coded : Coding, optional
            What a compression needs of the parties.
        """
        rows = self.bounded(rows, layout)
        if self.compression is not None and coded is not None:
            rows = self._encoded(rows, layout, self.compression, coded)
        return self.noised(rows, layout, entropies)

    def bounded(self, rows: Array, layout: Layout) -> Array:
        """Clip contributions of shape (parties, size), and zero what is not finite; a mechanism does both itself.

        With compression the clip comes before it as well.
        """
        if self.mechanism is not None and self.compression is None:
            return rows
        with np.errstate(invalid="ignore", over="ignore"):
            suspicious = not np.isfinite(rows.sum())  # one pass; a sum that overflows alone is looked at more closely
        if suspicious and not np.isfinite(rows).all():
            if self.clip is None and self.mechanism is None and self.plan is None:
                raise ContributionInvalid(
                    "a contribution is not finite.",
                    remedy="Look for missing or overflowing values, and too large a learning rate.",
                )
            rows = np.where(np.isfinite(rows).all(-1, keepdims=True), rows, 0.0)  # a refusal would reveal it
        if self.clip is None:
            return rows
        parts = [bound.clip(rows[:, part]) for part, bound in blocks(self.clip, layout)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def noised(self, rows: Array, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Pass bounded contributions, or their codes, through the mechanism's half at the party."""
        if self.mechanism is None or self.bounds is None:
            return rows
        return self.mechanism.at_party(rows, self.bounds, self.code(layout), entropies)

    def _encoded(self, rows: Array, layout: Layout, by: Compression, coded: Coding) -> Array:
        """Encode rows; a compression that remembers adds what it left out before, and keeps what it leaves out now."""
        if not by.remembers:
            return by.encode(rows, layout, coded.public(), coded.own)
        shape = rows.shape if coded.stacked else (layout.size,)
        lost = np.asarray(coded.state.get(coded.key, np.zeros(shape, np.float32)))
        wanted = rows + lost.reshape(rows.shape)
        code = by.encode(wanted, layout, coded.public(), coded.own)
        code = self.bounded(code, by.code(layout))  # the clip holds for the code; clipping `wanted` would shrink what is sent
        with np.errstate(invalid="ignore", over="ignore"):
            waits = (wanted - by.decode(code, layout, coded.public())).astype(np.float32)
        kept = np.where(np.isfinite(waits).all(-1, keepdims=True), waits, np.float32(0))
        coded.state[coded.key] = kept.reshape(lost.shape)
        return code

    # ---- the server's half ------------------------------------------------------------------------------------------
    def within(self, rows: Array, layout: Layout, parties: int = 1) -> Array:
        """Which rows that came from elsewhere, of shape (n, size), are within what parties are held to; shape (n,).

        Parameters
        ----------
        layout : Layout
            Of the contributions.
        parties : int
            Whose rows each of these adds up: it may be as long as all their bounds together, and a code of a
            compression longer than that by its `stretch`.
        """
        if self.mechanism is not None and self.bounds is not None:
            return self.mechanism.within(rows, self.bounds, self.code(layout), parties)
        if self.clip is None:
            return np.ones(len(rows), bool)
        by = self.compression  # one that remembers clips its codes as well
        short = [
            bound.size(rows[:, part].astype(np.float64))
            <= bound.radius * parties * (1 + SLACK) * (1.0 if by is None or by.remembers else by.stretch(bound.norm, layout))
            for part, bound in blocks(self.clip, self.code(layout))
        ]
        found: Array = np.concatenate(short, axis=-1)
        return np.asarray(found.all(-1))

    def open(self, total: Array, layout: Layout, entropy: Entropy, public: Stream) -> Array:
        """Turn a total of what left the parties into what is released, of shape (size,)."""
        if self.mechanism is not None and self.bounds is not None:
            total = self.mechanism.at_server(total.astype(np.int64), self.bounds, self.code(layout), entropy)
        return total if self.compression is None else self.compression.decode(total, layout, public)

    def enough(self, answered: int) -> None:
        """Refuse to release a total of too few parties for the noise that they add together."""
        if self.mechanism is not None:
            self.mechanism.enough(answered)


@dataclass(frozen=True)
class Coding:
    """What a compression needs of the parties whose rows it encodes.

    Attributes
    ----------
    public : callable
        Gives the randomness that all parties of the question share, each time from its beginning.
    own : sequence of Stream
        Of each row's party.
    state : dict
        What the party keeps, or the stacked parties keep.
    key : str
        Under which the state has what was left out.
    stacked : bool
        Whether the state has a leading axis.
    """

    public: Callable[[], Stream]
    own: Sequence[Stream]
    state: State
    key: str
    stacked: bool


def public_stream(seed: int, place: int | str) -> Stream:
    """Randomness that the server draws for one question and sends along: the same for every party, from its beginning."""
    return Streams(seed).stream(place, "server", "public")


def no_entropy(which: int) -> Any:
    """For a release whose parties add no noise."""
    return bytes
