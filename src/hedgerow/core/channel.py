"""Channels: how a sum travels. Three named slots, clip, mechanism and aggregation, so that a wrong order cannot be written.

One object, the `Shield` of a query, couples the facts of a private release: the bound that is enforced, the mechanism
that takes its noise from that bound, and the event that states exactly that noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from hedgerow.errors import ContributionInvalid, SlotFilled, UnboundedSum, UnlawfulChannel

from .arrays import Array, Layout
from .bound import Bound, Bounds, blocks, describe, unit_of
from .events import Event, Unit
from .randomness import Entropy

Position = Literal["server", "party"]


class Mechanism(Protocol):
    """A randomised release of bounded sums, by the server or by each party; see `hedgerow.privacy.mechanisms`."""

    at: Position

    def event(self, bounds: Bounds) -> Event:
        """The cost of one release of a sum with these bounds."""

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse a contribution whose noise cannot be drawn."""

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Turn rows of shape (parties, size) into what may leave: integers on the mechanism's grid."""

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Turn the integer total of shape (size,) into the release, in the units of the contribution."""


class Aggregation(Protocol):
    """How the total of the cohort's rows is formed."""

    @property
    def name(self) -> str: ...

    @property
    def hides_rows(self) -> bool:
        """Whether the server learns nothing but the total."""


@dataclass(frozen=True)
class Plain:
    """The server receives every row and adds them up."""

    name: str = "plain"
    hides_rows: bool = False


LAWFUL: dict[tuple[Position | None, bool], str] = {
    (None, False): "the server sees every contribution as it is",
    (None, True): "the server sees the exact total and nothing else",
    ("server", False): "central privacy: the server sees every contribution, the world sees noisy totals",
    ("server", True): "central privacy: the server sees exact totals, the world sees noisy totals",
    ("party", False): "local privacy: nobody sees anything without noise",
    ("party", True): "local privacy, and the server sees only a total",
}
"""Who adds noise (nobody, server, party) and whether rows are hidden; every pair outside this table is refused."""


@dataclass(frozen=True)
class Shield:
    """What one query's contributions and total go through; made by `Channel.shield`."""

    clip: Bounds | None = None
    bounds: Bounds | None = None
    mechanism: Mechanism | None = None

    @property
    def open(self) -> bool:
        """Whether contributions leave as they are."""
        return self.clip is None and self.mechanism is None

    @property
    def unit(self) -> Unit | None:
        return None if self.bounds is None else unit_of(self.bounds)

    @property
    def event(self) -> Event:
        """The cost of one release through this shield."""
        return Event("nonprivate") if self.mechanism is None or self.bounds is None else self.mechanism.event(self.bounds)

    def fit(self, layout: Layout) -> None:
        """Refuse, before anybody is asked, a contribution that clip, bounds or noise do not fit."""
        for bounds in (self.clip, self.bounds):
            if bounds is not None:
                blocks(bounds, layout)
        if self.mechanism is not None and self.bounds is not None:
            self.mechanism.fit(self.bounds, layout)

    def at_party(self, rows: Array, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Clip contributions of shape (parties, size) and pass them through the mechanism's half at the party."""
        if not np.isfinite(rows).all():
            if self.open:
                raise ContributionInvalid("a contribution is not finite.", remedy="Look for missing or overflowing values.")
            rows = np.where(np.isfinite(rows).all(-1, keepdims=True), rows, 0.0)  # to refuse it would reveal it
        if self.clip is not None:
            rows = np.concatenate([bound.clip(rows[:, part]) for part, bound in blocks(self.clip, layout)], axis=-1)
        if self.mechanism is None or self.bounds is None:
            return rows
        return self.mechanism.at_party(rows, self.bounds, layout, entropies)

    def at_server(self, total: Array, layout: Layout, entropy: Entropy) -> Array:
        """Turn a total of shape (size,) into the release."""
        if self.mechanism is None or self.bounds is None:
            return total
        return self.mechanism.at_server(total.astype(np.int64), self.bounds, layout, entropy)


@dataclass(frozen=True)
class Channel:
    """Clip, mechanism and aggregation; each slot can be filled once."""

    clip: Bounds | None = None
    mechanism: Mechanism | None = None
    aggregation: Aggregation = field(default_factory=Plain)

    def fill(self, **slots: Any) -> Channel:
        """Fill empty slots; refuse a slot that the caller has filled, and unlawful combinations."""
        given = {name: value for name, value in slots.items() if value is not None}
        for name, value in given.items():
            named = hasattr(value, "event" if name == "mechanism" else "hides_rows")
            if not (isinstance(value, (Bound, Mapping)) if name == "clip" else named):
                raise UnlawfulChannel(f"{value!r} is no {name}.", remedy="For example clip=l2(1.0), mechanism=Gaussian(1.1).")
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
                remedy="Noise is added at 'server' or at 'party'.",
            )
        if channel.clip is not None and unit_of(channel.clip) == "record":
            raise UnlawfulChannel(
                f"the clip {describe(channel.clip)} is per record, but a channel sees a party's whole contribution.",
                remedy="Clip per party, e.g. l2(1.0); a record-level bound is declared beside its sum.",
            )
        return channel

    def shield(self, name: str, declared: Bounds | None) -> Shield:
        """Return the protection of one sum, or refuse it: noise without a bound has no scale."""
        bounds = self.clip if self.clip is not None else declared
        if self.mechanism is not None and bounds is None:
            raise UnboundedSum(
                f"{name} was asked through a channel that adds noise ({self.mechanism}), but the sum declares no bound, "
                "so the noise has no scale.",
                remedy="Declare one:  federation.sum(local, broadcast, bound=l2(3.5, unit='record'))\n"
                "or clip:      federation.protect(clip=l2(3.5), mechanism=...)\n"
                "Bounds of statistics come from the schema: [data] ranges = { age = [18, 90] }, table.declare(age=(18, 90)).",
            )
        return Shield(self.clip, bounds, self.mechanism)

    @property
    def open(self) -> bool:
        """Whether rows reach the server one by one and unchanged."""
        return self.clip is None and self.mechanism is None and not self.aggregation.hides_rows

    def describe(self) -> dict[str, str]:
        """The three slots and what they mean together, in words."""
        at = None if self.mechanism is None else self.mechanism.at
        return {
            "clip": describe(self.clip),
            "mechanism": str(self.mechanism or "none"),
            "aggregation": self.aggregation.name,
            "meaning": LAWFUL[at, self.aggregation.hides_rows],
        }
