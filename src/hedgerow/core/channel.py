"""Channels: how a sum travels. Named slots, clip, compression, mechanism, aggregation: a wrong order cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hedgerow.errors import SlotFilled, UnboundedSum, UnlawfulChannel

from .aggregation import Aggregation, Plain
from .bound import Bound, Bounds, describe, unit_of
from .mechanism import Compression, Mechanism, Plan, Position
from .release import Release

LAWFUL: dict[tuple[Position | None, bool], str] = {
    (None, False): "the server sees every contribution as it is",
    (None, True): "the server sees the exact total and nothing else",
    ("server", False): "central privacy: the server sees every contribution, the world sees noisy totals",
    ("server", True): "central privacy: the server sees exact totals, the world sees noisy totals",
    (
        "aggregators",
        True,
    ): "distributed privacy, while one aggregator is honest: the server sees a total with the noise of each",
    ("shares", True): "distributed privacy: the server sees a total with noise of which every party added a share",
    ("party", False): "local privacy: nobody sees anything without noise",
    ("party", True): "local privacy, and the server sees only a total",
}
"""Who adds noise (nobody, server, aggregators, all parties together, each party) and whether rows are hidden.

Other pairs are refused, and noise at aggregators where the aggregation has none.
"""


@dataclass(frozen=True)
class Channel:
    """Clip, compression, mechanism and aggregation; each slot can be filled once."""

    clip: Bounds | None = None
    mechanism: Mechanism | None = None
    aggregation: Aggregation = field(default_factory=Plain)
    compression: Compression | None = None

    def fill(self, **slots: Any) -> Channel:
        """Fill empty slots; refuse a slot that the caller has filled, and unlawful combinations."""
        given, filled = {name: value for name, value in slots.items() if value is not None}, dict[str, Any]()
        aggregation = given.get("aggregation", self.aggregation)
        if isinstance(noise := given.get("mechanism"), Mechanism) and (k := getattr(aggregation, "aggregators", 0)):
            given["mechanism"] = noise.added_by(k)
        for name, value in given.items():
            if not _fits_slot(name, value):
                raise UnlawfulChannel(
                    f"{value!r} is no {name}.",
                    remedy="For example clip=l2(1.0), mechanism=Gaussian(1.1), aggregation=SecAgg().",
                )
            held = getattr(self, name)
            if held is None or type(held) is Plain:
                filled[name] = dict(value) if isinstance(value, Mapping) else value
            elif type(value) is not type(held) or held != value:  # what is filled decides, and stays
                raise SlotFilled(
                    f"the channel's {name} is already {held}; {value} would replace it.",
                    remedy="A program may add protection, never replace it. Start from the unprotected federation.",
                )
        channel = replace(self, **filled)
        channel._refuse_unlawful()
        return channel

    def by(self, aggregation: Aggregation) -> Channel:
        """Return the same slots with another aggregation in the place of the one that is there.

        Raises
        ------
        UnlawfulChannel (HR-211)
            Its aggregators are to add noise, or to have rows proved, and the other has none who would.
        """
        refuse_nobody(self.mechanism, aggregation)
        if self.aggregation.verified and not aggregation.verified:
            raise UnlawfulChannel(
                f"rows are to be proved ({self.aggregation.name}), and nobody proves any through {aggregation.name}.",
                remedy="Leave verified out where columns lie apart.",
            )
        return replace(self, aggregation=aggregation)

    def _refuse_unlawful(self) -> None:
        """Refuse slots that protect nothing together."""
        at, hides = self.noise_at, self.aggregation.hides_rows
        refuse_nobody(self.mechanism, self.aggregation)
        if (at, hides) not in LAWFUL:
            raise UnlawfulChannel(
                f"noise at {at!r} with {self.aggregation.name} aggregation is not in the table of lawful channels.",
                remedy="Noise is added at 'server' or 'party', or in 'shares' where the aggregation hides rows.",
            )
        self.aggregation.admit(at)
        fills = at in ("party", "shares") or hides
        if self.compression is not None and fills and not self.compression.linear:
            raise UnlawfulChannel(
                f"{self.compression} does not survive noise at the party or hidden rows: they fill what it left out.",
                remedy="Use a linear compression (random coordinates, a sketch), or add the noise at the server.",
            )
        if self.clip is not None and unit_of(self.clip) == "record":
            raise UnlawfulChannel(
                f"the clip {describe(self.clip)} is per record, but a channel sees a party's whole contribution.",
                remedy="Clip per party, e.g. l2(1.0); a record-level bound is declared beside its sum.",
            )

    @property
    def noise_at(self) -> Position | None:
        return None if self.mechanism is None else self.mechanism.at

    def release(self, name: str, declared: Bounds | None, plan: Plan | None = None) -> Release:
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
                "or a range:   largest=1e6 of the aggregation, e.g. SecAgg(largest=1e6).",
            )
        if bounds is not None and self.mechanism and self.compression and unit_of(bounds) == "record":
            raise UnlawfulChannel(
                f"{name} is bounded per record, but how far a record moves a code ({self.compression}) is not known.",
                remedy="Clip per party, e.g. protect(clip=l2(1.0)), or leave the compression out.",
            )
        return Release(self.clip, bounds, self.mechanism, self.compression, plan)

    @cached_property
    def protection(self) -> Protection:
        """What the slots mean together."""
        mechanism, hidden = self.mechanism, self.aggregation
        return Protection(
            clip=dict(self.clip) if isinstance(self.clip, Mapping) else self.clip,
            mechanism=str(mechanism or "none"),
            noise_at=self.noise_at,
            law=getattr(mechanism, "law", None),
            compression=str(self.compression or "none"),
            aggregation=hidden.name,
            hides_rows=hidden.hides_rows,
            hides_model=hidden.hides_model,
            largest=hidden.largest,
            records=hidden.records,
            meaning=LAWFUL[self.noise_at, hidden.hides_rows],
            shows=hidden.shows,
            shared=mechanism is not None and mechanism.key is not None,
            least=max(hidden.least, 0 if mechanism is None else mechanism.least),
        )


@dataclass(frozen=True)
class Protection:
    """What a program may know of how its sums are protected: words and numbers, and no slot of the channel.

    Attributes
    ----------
    clip : Bound or dict of Bound, optional
    mechanism, compression, aggregation : str
        The slots in words, or "none".
    noise_at : {"server", "aggregators", "shares", "party"} or None
    law : str or None
        Of the noise, such as "gaussian".
    hides_rows, hides_model : bool
        Whether the server sees totals alone; whether parties compute without the broadcast.
    largest, records : float or None
        Range of a number, and of a party's record weights, of aggregations that make whole numbers of contributions.
    meaning, shows : str
        Who sees what, in words.
    shared : bool
        Whether several questions share the mechanism's noise or its charge.
    least : int
        Parties in the smallest cohort of which a total is made: by the aggregation, and by noise in shares.
    """

    clip: Bounds | None
    mechanism: str
    noise_at: Position | None
    law: str | None
    compression: str
    aggregation: str
    hides_rows: bool
    hides_model: bool
    largest: float | None
    records: float | None
    meaning: str
    shows: str
    shared: bool = False
    least: int = 0

    @property
    def noisy(self) -> bool:
        """Whether noise is added."""
        return self.noise_at is not None

    @property
    def compressed(self) -> bool:
        return self.compression != "none"

    @property
    def exact(self) -> bool:
        """Whether totals are those of the contributions, neither clipped nor noisy."""
        return self.clip is None and not self.noisy

    @property
    def open(self) -> bool:
        """Whether rows reach the server one by one and unchanged."""
        return self.exact and not self.compressed and not self.hides_rows


def refuse_nobody(mechanism: Mechanism | None, aggregation: Aggregation) -> None:
    """Refuse noise that aggregators are to add where an aggregation has none, or others: nobody would add it (HR-211)."""
    if mechanism is None or mechanism.at != "aggregators":
        return
    if not aggregation.aggregators:
        raise UnlawfulChannel(
            f"noise is to be added by the aggregators, and {aggregation.name} aggregation has none.",
            remedy="Split rows among aggregators, one of whom is honest: aggregation=AdditiveShares(aggregators=2),\n"
            'in a study [protection] aggregation = { by = "additive", aggregators = 2 }. Or let parties add it: "shares".',
        )
    if mechanism.aggregators != aggregation.aggregators:
        raise UnlawfulChannel(
            f"{mechanism}, and {aggregation.name} aggregation has {aggregation.aggregators}: noise of each would not be that.",
            remedy="Fill the slots of a channel with protect(mechanism=..., aggregation=...).",
        )


def _fits_slot(name: str, value: Any) -> bool:
    """Whether a value is what a slot of the channel holds."""
    if name == "clip":
        return isinstance(value, Bound) or (isinstance(value, Mapping) and all(isinstance(b, Bound) for b in value.values()))
    kind = {"mechanism": Mechanism, "aggregation": Aggregation, "compression": Compression}[name]
    return isinstance(value, kind)
