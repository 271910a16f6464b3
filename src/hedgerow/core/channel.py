"""Channels: how a sum travels. Named slots, clip, compression, mechanism, aggregation: a wrong order cannot be written.

One object, the `Shield` of a query, couples the facts of a private release: the bound that is enforced, the mechanism
that takes its noise from that bound, and the event that states exactly that noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from hedgerow.errors import ContributionInvalid, SlotFilled, UnboundedSum, UnlawfulChannel

from .arrays import Array, Layout
from .bound import Bound, Bounds, blocks, describe, unit_of
from .events import Event, Unit
from .randomness import Entropy, Stream

Position = Literal["server", "shares", "party"]


class Mechanism(Protocol):
    """A randomised release of bounded sums, by the server or by each party; see `hedgerow.privacy.mechanisms`.

    A mechanism whose noise spans several questions has a method `turn(use, streams, group)` besides, which returns the
    mechanism of its question number `use`, counted from zero, or refuses the group that is asked: the i-th of k that take
    turns, (0, 1) for everybody, None for a sample. The first question is charged for all of them, the others are prepaid:
    `span` names what was paid for, and `whole(bounds)` is its event, for guards of parties that were not asked first.
    One that adds noise in shares has `least`, how many shares make the whole noise, and a method `enough(answered)`, which
    refuses a total of fewer; one whose reports are not
    numbers of the contribution has `bytes(bounds, layout)`, the size of a report.
    """

    at: Position

    def event(self, bounds: Bounds) -> Event:
        """The cost of one release of a sum with these bounds."""

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse a contribution whose noise cannot be drawn."""

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Turn rows of shape (parties, size) into what may leave: integers on the mechanism's grid, within the bounds.

        A row that is not finite leaves as zeros: to refuse it would reveal it.
        """

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Turn the integer total of shape (size,) into the release, in the units of the contribution."""


class Plan(Protocol):
    """A private mechanism inside a local function, such as the noisy steps of a party that trains."""

    unit: Unit

    def event(self) -> Event:
        """The cost of one call."""


class Aggregation(Protocol):
    """How the total of the cohort's rows is formed; see `hedgerow.crypto` for those that hide rows.

    One that forms no total of a small cohort has `least`, the smallest that it takes; empty ones do not reach it.
    """

    @property
    def name(self) -> str: ...

    @property
    def hides_rows(self) -> bool:
        """Whether the server learns nothing but the total."""

    @property
    def largest(self) -> float | None:
        """Range of every number of a contribution that declares no bound, for aggregations that need one."""

    @property
    def shows(self) -> str:
        """What the server sees, in words."""

    def fit(self, parties: int, query: Any, layout: Layout | None) -> None:
        """Refuse, before anybody is asked, so few parties that a total shows their rows, or a total that does not fit."""

    def ask(self, engine: Any, outbox: Any, sessions: Any) -> Any:
        """Put a sum to the parties of an outbox through an engine, and return its inbox; `sessions` is the server's memory."""

    def bytes(self, numbers: float, parties: int) -> float:
        """What each party sends for one question beside, or in place of, four bytes to a number."""

    def bytes_down(self, numbers: float) -> float:
        """What each party is sent of a broadcast of so many numbers."""


class Compression(Protocol):
    """A shorter code for large contributions, made before masks and noise; see `hedgerow.compression`."""

    linear: bool
    """Whether codes are plain shorter vectors that add up, and so may be masked, or noised at the party."""

    remembers: bool
    """Whether a party keeps what was lost in one round, and adds it in the next."""

    def code(self, layout: Layout) -> Layout:
        """Keys and shapes of the code of a contribution."""

    def wire_bits(self, layout: Layout) -> float:
        """Size of one contribution's code on a wire."""

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Turn rows of shape (parties, size) into codes; `public` randomness is shared by all parties of a round."""

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Turn a total of codes into a total of contributions, of shape (size,); leading axes are kept."""


@dataclass(frozen=True)
class Plain:
    """The server receives every row and adds them up."""

    name: str = "plain"
    hides_rows: bool = False
    largest: float | None = None
    shows: str = "the server sees every contribution"

    def fit(self, parties: int, query: Any, layout: Layout | None) -> None:
        """Rows are seen, however few."""

    def ask(self, engine: Any, outbox: Any, sessions: Any = None) -> Any:
        """One exchange."""
        return engine.exchange(outbox)

    def bytes(self, numbers: float, parties: int) -> float:
        """Nothing beside the contribution."""
        return 0.0

    def bytes_down(self, numbers: float) -> float:
        """The broadcast as it is."""
        return 4.0 * numbers


LAWFUL: dict[tuple[Position | None, bool], str] = {
    (None, False): "the server sees every contribution as it is",
    (None, True): "the server sees the exact total and nothing else",
    ("server", False): "central privacy: the server sees every contribution, the world sees noisy totals",
    ("server", True): "central privacy: the server sees exact totals, the world sees noisy totals",
    ("shares", True): "distributed privacy: the server sees a total with noise of which every party added a share",
    ("party", False): "local privacy: nobody sees anything without noise",
    ("party", True): "local privacy, and the server sees only a total",
}
"""Who adds noise (nobody, server, all parties together, each party) and whether rows are hidden; other pairs are refused."""


@dataclass(frozen=True)
class Shield:
    """What one query's contributions and total go through; made by `Channel.shield`."""

    clip: Bounds | None = None
    bounds: Bounds | None = None
    mechanism: Mechanism | None = None
    compression: Compression | None = None
    plan: Plan | None = None

    @property
    def open(self) -> bool:
        """Whether contributions leave as they are."""
        return self.clip is None and self.mechanism is None and self.compression is None

    def code(self, layout: Layout) -> Layout:
        """Keys and shapes of what leaves a party."""
        return layout if self.compression is None else self.compression.code(layout)

    def bytes(self, layout: Layout) -> float:
        """Size of what leaves a party, with 32 bits to a number that is not compressed."""
        if self.mechanism is not None and hasattr(self.mechanism, "bytes"):
            size: float = self.mechanism.bytes(self.bounds, layout)
            return size
        return 4.0 * layout.size if self.compression is None else self.compression.wire_bits(layout) / 8

    @property
    def unit(self) -> Unit | None:
        if self.plan is not None:
            return self.plan.unit
        return None if self.bounds is None else unit_of(self.bounds)

    @property
    def at_parties(self) -> bool:
        """Whether parties add the noise, so that the server need not be trusted, and who answers protects nobody."""
        return self.plan is not None or (self.mechanism is not None and self.mechanism.at in ("party", "shares"))

    @property
    def noise(self) -> str:
        """The mechanism in words."""
        return str(self.mechanism or "none") if self.plan is None else f"{self.plan} at the party"

    @property
    def event(self) -> Event:
        """The cost of one release through this shield."""
        if self.plan is not None:
            return self.plan.event()
        return Event("nonprivate") if self.mechanism is None or self.bounds is None else self.mechanism.event(self.bounds)

    def fit(self, layout: Layout) -> None:
        """Refuse, before anybody is asked, a contribution that clip, bounds or noise do not fit."""
        layout = self.code(layout)
        for bounds in (self.clip, self.bounds):
            if bounds is not None:
                blocks(bounds, layout)
        if self.mechanism is not None and self.bounds is not None:
            self.mechanism.fit(self.bounds, layout)

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
                raise ContributionInvalid("a contribution is not finite.", remedy="Look for missing or overflowing values.")
            rows = np.where(np.isfinite(rows).all(-1, keepdims=True), rows, 0.0)  # to refuse it would reveal it
        if self.clip is None:
            return rows
        parts = [bound.clip(rows[:, part]) for part, bound in blocks(self.clip, layout)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def at_party(self, rows: Array, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Pass bounded contributions, or their codes, through the mechanism's half at the party."""
        if self.mechanism is None or self.bounds is None:
            return rows
        return self.mechanism.at_party(rows, self.bounds, self.code(layout), entropies)

    @property
    def least(self) -> int:
        """Parties whose shares make the whole noise, so that nobody may see a total of fewer; 0 where noise is not shared."""
        return int(self.mechanism.least) if self.mechanism is not None and self.mechanism.at == "shares" else 0  # type: ignore[attr-defined]

    def enough(self, answered: int) -> None:
        """Refuse to release a total of too few parties for the noise that they add together."""
        if self.mechanism is not None and self.mechanism.at == "shares":
            self.mechanism.enough(answered)  # type: ignore[attr-defined]

    def at_server(self, total: Array, layout: Layout, entropy: Entropy, public: Stream) -> Array:
        """Turn a total of what left the parties into the release, of shape (size,)."""
        if self.mechanism is not None and self.bounds is not None:
            total = self.mechanism.at_server(total.astype(np.int64), self.bounds, self.code(layout), entropy)
        return total if self.compression is None else self.compression.decode(total, layout, public)


@dataclass(frozen=True)
class Channel:
    """Clip, compression, mechanism and aggregation; each slot can be filled once."""

    clip: Bounds | None = None
    mechanism: Mechanism | None = None
    aggregation: Aggregation = field(default_factory=Plain)
    compression: Compression | None = None

    def fill(self, **slots: Any) -> Channel:
        """Fill empty slots; refuse a slot that the caller has filled, and unlawful combinations."""
        given = {name: value for name, value in slots.items() if value is not None}
        for name, value in given.items():
            named = hasattr(value, {"mechanism": "event", "compression": "wire_bits"}.get(name, "hides_rows"))
            if not (isinstance(value, (Bound, Mapping)) if name == "clip" else named):
                raise UnlawfulChannel(
                    f"{value!r} is no {name}.",
                    remedy="For example clip=l2(1.0), mechanism=Gaussian(1.1), aggregation=SecAgg().",
                )
            held = getattr(self, name)
            if held is not None and held != Plain() and held != value:
                raise SlotFilled(
                    f"the channel's {name} is already {held}; {value} would replace it.",
                    remedy="A program may add protection, never replace it. Start from the unprotected federation.",
                )
        channel = replace(self, **given)
        at = None if channel.mechanism is None else channel.mechanism.at
        if (at, channel.aggregation.hides_rows) not in LAWFUL:
            raise UnlawfulChannel(
                f"noise at {at!r} with {channel.aggregation.name} aggregation is not in the table of lawful channels.",
                remedy="Noise is added at 'server' or 'party', or in 'shares' where the aggregation hides rows.",
            )
        fills = at in ("party", "shares") or channel.aggregation.hides_rows
        if channel.compression is not None and fills and not channel.compression.linear:
            raise UnlawfulChannel(
                f"{channel.compression} does not survive noise at the party or hidden rows: they fill what it left out.",
                remedy="Use a linear compression (random coordinates, a sketch), or add the noise at the server.",
            )
        if channel.clip is not None and unit_of(channel.clip) == "record":
            raise UnlawfulChannel(
                f"the clip {describe(channel.clip)} is per record, but a channel sees a party's whole contribution.",
                remedy="Clip per party, e.g. l2(1.0); a record-level bound is declared beside its sum.",
            )
        return channel

    def shield(self, name: str, declared: Bounds | None, plan: Plan | None = None) -> Shield:
        """Return the protection of one sum, or refuse it: noise without a bound has no scale.

        Parameters
        ----------
        plan : Plan, optional
            Of a local function that is private in itself.
        """
        bounds = self.clip if self.clip is not None else declared
        if plan is not None and self.mechanism is not None:
            raise UnlawfulChannel(
                f"{name} adds its own noise ({plan}), and the channel would add {self.mechanism} to it.",
                remedy="Ask through a federation without a mechanism.",
            )
        if self.mechanism is not None and bounds is None:
            raise UnboundedSum(
                f"{name} was asked through a channel that adds noise ({self.mechanism}), but the sum declares no bound, "
                "so the noise has no scale.",
                remedy="Declare one:  federation.sum(local, broadcast, bound=l2(3.5, unit='record'))\n"
                "or clip:      federation.protect(clip=l2(3.5), mechanism=...)\n"
                "Bounds of statistics come from the schema: [data] ranges = { age = [18, 90] }, table.declare(age=(18, 90)).",
            )
        if self.aggregation.hides_rows and bounds is None and self.aggregation.largest is None:
            raise UnboundedSum(
                f"{name} was asked through {self.aggregation.name} aggregation, which makes whole numbers of contributions, "
                "but the sum declares no bound, so they have no range.",
                remedy="Declare one:  federation.sum(local, broadcast, bound=linf(1e6, unit='record'))\n"
                "or clip:      federation.protect(clip=l2(3.5), aggregation=...)\n"
                "or a range:   aggregation=SecAgg(largest=1e6).",
            )
        if bounds is not None and self.mechanism and self.compression and unit_of(bounds) == "record":
            raise UnlawfulChannel(
                f"{name} is bounded per record, but how far a record moves a code ({self.compression}) is not known.",
                remedy="Clip per party, e.g. protect(clip=l2(1.0)), or leave the compression out.",
            )
        return Shield(self.clip, bounds, self.mechanism, self.compression, plan)

    @property
    def open(self) -> bool:
        """Whether rows reach the server one by one and unchanged."""
        return self.clip is None and self.mechanism is None and self.compression is None and not self.aggregation.hides_rows

    def describe(self) -> dict[str, str]:
        """The slots and what they mean together, in words."""
        at = None if self.mechanism is None else self.mechanism.at
        return {
            "clip": describe(self.clip),
            "compression": str(self.compression or "none"),
            "mechanism": str(self.mechanism or "none"),
            "aggregation": self.aggregation.name,
            "meaning": LAWFUL[at, self.aggregation.hides_rows],
        }
