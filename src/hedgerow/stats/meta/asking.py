"""How sums over sites are asked for: through which channels, and what a party may add at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.core.bound import Bounds, linf
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid, UnboundedSum, UnlawfulChannel

from ..columns import is_exact
from ..linear.asking import WHOLE, Asked
from ..linear.reach import SLACK

WHY = (
    "each site solves something of its own first, and a record moves what the whole site adds: what one record moves has no "
    "small bound, and noise for it no scale"
)


@dataclass(frozen=True)
class AskedSites:
    """A design as its sums over sites are asked for.

    Attributes
    ----------
    asked : Asked
        The federation, with rows prepared, and units.
    most : float
        Most records of a party.
    declared : bool
        Whether `most` was given, so that parties hold to it.
    """

    asked: Asked
    most: float
    declared: bool

    @property
    def settings(self) -> dict[str, Any]:
        """Of every local function."""
        return {"most": self.most} if self.declared else {}

    @property
    def bounded(self) -> bool:
        """Whether sums are asked with bounds: rows are hidden, and ranges are declared."""
        return self.asked.hidden and self.asked.bounded

    def bounds(self, sizes: Mapping[str, float]) -> Bounds | None:
        """Bounds of what a party adds to each number of a key, where rows are hidden."""
        return {key: linf(size * SLACK or 1.0, "party") for key, size in sizes.items()} if self.bounded else None


def refuse_noise(federation: Federation, what: str) -> None:
    """Refuse a channel that clips or adds noise.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if not is_exact(federation):
        raise UnlawfulChannel(
            f"{what} goes through no channel that clips or adds noise: {WHY}.",
            remedy="Ask through a channel without them; behind secure aggregation the server sees totals alone.\n"
            "Through noise: y ~ x + C(site), with the site as a column.",
        )


def most_records(federation: Federation, most: float | None, over: str = "sites") -> float:
    """Return the most records that a party has, as declared; 1 where nothing depends on it.

    Raises
    ------
    UnboundedSum (HR-210), SettingsInvalid (HR-511)
    """
    if most is not None and not most >= 1:
        raise SettingsInvalid(f"most={most!r} records of a party.", remedy="At least 1.")
    protection = federation.protection
    if protection.hides_rows and protection.largest is None and not (most or protection.records):
        raise UnboundedSum(
            f"nobody says how many records a party has at most, so sums over {over} have no bound{WHOLE}.",
            remedy="Declare it: most=5000.",
        )
    return most or protection.records or 1.0
