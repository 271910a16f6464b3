"""Designs with a random intercept: `y ~ x + (1 | ward)`, and how they are asked for.

A cluster lies within one party: its records are those of one value of its column at that party. Who wants the parties
themselves as clusters writes `(1 | site)`. A value that two parties share would be two clusters, and no party can see that; so
somebody who knows has to say that there is none: by the column's role "cluster", or by `nested`. People who are at several
parties need a linkage that this model does not make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import PRESENT, Party
from hedgerow.core.question import elementwise_where, travels
from hedgerow.data import complete_cases
from hedgerow.errors import FormulaInvalid, NotIdentified, RangeExceeded, SettingsInvalid, UnlawfulChannel

from ..columns import is_exact
from ..design import Design, design, design_of
from ..indicators import with_indicators
from ..linear.asking import WHOLE, Asked
from ..linear.losses import FamilyName
from ..linear.reach import SLACK, undeclared
from ..meta.asking import most_records

if TYPE_CHECKING:
    from hedgerow.data import Schema

SITES = ("site", "party")
"""Names of the parties as clusters, where no column is called so."""
_BAR = re.compile(r"\(\s*([^()|]*?)\s*\|\s*([^()|]*?)\s*\)")


@dataclass(frozen=True)
class MixedDesign:
    """The columns of a model with a random intercept, hashable.

    Attributes
    ----------
    formula : str
        As it was written.
    rows : Design
        Target and columns of the fixed effects.
    cluster : str or None
        The column that tells clusters apart within a party; None where each party is a cluster.
    """

    formula: str
    rows: Design
    cluster: str | None

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns that a record must have."""
        return (*self.rows.valued, *((self.cluster,) if self.cluster else ()))

    @property
    def of_what(self) -> str:
        """What a cluster is, in words."""
        return self.cluster or "site"


def read_mixed(
    schema: Schema, formula: str, family: FamilyName, *, offset: str | None = None, nested: bool = False
) -> MixedDesign:
    """Read a formula with one term `(1 | cluster)`; nobody is asked.

    Parameters
    ----------
    nested : bool
        Whether records of one cluster are at one party, also where the column's role does not say so.

    Raises
    ------
    SettingsInvalid (HR-511)
        Nobody says that clusters lie each within one party.
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403)
        There is no such term, or several, or one with slopes; or what `design_of` refuses.
    """
    bars = _BAR.findall(formula)
    if len(bars) != 1 or bars[0][0] != "1" or formula.count("|") != 1:
        raise FormulaInvalid(
            f"{formula!r} has {len(bars)} random terms of the form (1 | cluster).",
            remedy="Write one random intercept: y ~ x + (1 | ward), or (1 | site) for the parties. Random slopes and several\n"
            "random terms are not fitted.",
        )
    target, _, right = formula.partition("~")
    terms = _BAR.sub("", right)
    terms = re.sub(r"\+\s*\+", "+", terms).strip().strip("+").strip() or "1"
    rows = design_of(schema, f"{target.strip()} ~ {terms}", family, offset=offset)
    name = bars[0][1].strip("` ")
    cluster = None if name in SITES and name not in schema else schema[name].name
    if cluster is not None and (schema[cluster].shape or schema[cluster].kind == "number"):
        raise FormulaInvalid(
            f"column {cluster!r} is a measurement, and tells no clusters apart.",
            remedy="A cluster is a category or a whole number: declare its kind, or its role: id or cluster.",
        )
    if cluster is not None and schema[cluster].role != "cluster" and not nested:
        raise SettingsInvalid(
            f"nobody says that each cluster of {cluster!r} lies within one party; one that spans parties would count as "
            "several, and no party can see that.",
            remedy='Declare the column\'s role "cluster", or say nested=True. Values may repeat at other parties if they mean\n'
            "other clusters there, such as ward 1 of each hospital. Parties themselves are (1 | site).",
        )
    return MixedDesign(formula, rows, cluster)


@travels
@elementwise_where(lambda spec: spec.rows.is_arithmetic)
def mixed_design(columns: Mapping[str, Array], *, spec: MixedDesign) -> dict[str, Array]:
    """Prepare the rows of a mixed model at a party: those of `design`, and `cluster` (n,), zeros where the party is one."""
    found = design(columns, spec=spec.rows)
    n = len(found["y"])
    cluster = np.zeros(n) if spec.cluster is None else np.asarray(columns[spec.cluster])
    if PRESENT in columns:  # a record that is left out belongs to some cluster, with weight zero
        cluster = np.where(np.asarray(columns[PRESENT]), cluster, np.zeros((), cluster.dtype))
    return found | {"cluster": cluster}


@dataclass(frozen=True)
class AskedMixed:
    """A mixed model as its sums are asked for.

    Attributes
    ----------
    asked : Asked
        The federation, with rows prepared, and units.
    most : float
        Most records of a party.
    declared : bool
        Whether parties hold to it.
    """

    asked: Asked
    most: float
    declared: bool

    def total(self, local: object, broadcast: dict[str, Array], sizes: Mapping[str, float]) -> dict[str, Array]:
        """Ask for a sum, of which a party adds at most `sizes` to each number of a key."""
        bounded = self.asked.hidden and self.asked.bounded
        bounds: Bounds | None = {key: linf(size * SLACK or 1.0, "party") for key, size in sizes.items()} if bounded else None
        found: dict[str, Array] = self.asked.total(local, broadcast, bounds)
        return found


def ask_for_clusters(federation: Federation, spec: MixedDesign, most: float | None) -> AskedMixed:
    """Prepare a mixed model at the parties, of the records that lack none of its columns.

    Where rows are hidden, parties divide each column by its declared limit.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The channel clips or adds noise.
    UnboundedSum (HR-210)
        Rows are hidden, and a range, or the most records of a party, is not declared.
    """
    if not is_exact(federation):
        raise UnlawfulChannel(
            "a mixed model goes through no channel that clips or adds noise: a record moves how its whole cluster counts, so "
            "what one record moves has no small bound.",
            remedy="Ask through a channel without them; or fit fixed effects through noise: stats.private.inference.",
        )
    largest = most_records(federation, most, "its clusters")
    protection = federation.protection
    hidden = protection.hides_rows
    unit = replace(spec, rows=spec.rows.to_unit()) if hidden else spec
    rows = unit.rows
    bounded = rows.limits is not None and rows.response_range is not None and rows.offset_range is not None
    if hidden and protection.largest is None and not bounded:
        raise undeclared(spec.rows, WHOLE)
    federation = with_indicators(complete_cases(federation, spec.reads), spec.rows)
    factors = np.array(rows.scales or np.ones(rows.size)) / np.array(spec.rows.scales or np.ones(rows.size))
    asked = Asked(federation.prepare(mixed_design, spec=unit), rows, factors, hidden, False, bounded)
    return AskedMixed(asked, largest, most is not None)


def cluster_codes(party: Party, most: float | None) -> tuple[Array, Array, int]:
    """Which records count, shape (n,), the cluster of each of them, and how many clusters there are.

    Raises
    ------
    RangeExceeded (HR-243)
        The party has more records than were declared.
    """
    there = party.w > 0
    n = float(party.w.sum())
    if most is not None and n > most * SLACK:
        raise RangeExceeded(
            f"this party has {n:g} records, and most={most:g} are declared.",
            remedy="Declare the most that any party has: most=.",
        )
    known, codes = np.unique(party["cluster"][there], return_inverse=True)
    return there, codes.reshape(-1), len(known)


def check_clusters(clusters: float, n: float) -> None:
    """Refuse clusters of which nothing can be told apart.

    Raises
    ------
    NotIdentified (HR-320)
        There is one, or each has one record.
    """
    if clusters < 1.5 or clusters > n - 0.5:
        what = "there is one cluster" if clusters < 1.5 else f"each of {clusters:.0f} clusters has one record"
        raise NotIdentified(
            f"{what}, so how much clusters differ cannot be told.",
            remedy="Name a column whose values several records share, of at least two values; or leave out (1 | ...).",
        )
