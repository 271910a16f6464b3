"""Standardisation: means and standard deviations by sums, then a preparation at each party."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.question import elementwise, minds_missing, travels
from hedgerow.errors import SchemaInvalid

from .columns import chosen, names_of, schema_of
from .moments import moments

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Schema


@travels
@elementwise
@minds_missing
def rescale(
    columns: Mapping[str, Array], *, names: tuple[str, ...], means: tuple[float, ...], scales: tuple[float, ...]
) -> dict[str, Array]:
    """Subtract a mean and divide by a scale, column by column; what is missing stays so."""
    return {name: (columns[name] - mean) / scale for name, mean, scale in zip(names, means, scales, strict=True)}


@dataclass(frozen=True)
class Scaling:
    """Means and scales of columns, as released; applies to any federation that holds those columns.

    Attributes
    ----------
    names : tuple of str
    means, scales : tuples of float
        The scale of a constant column is 1.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def apply(self, federation: Federation) -> Federation:
        """Return the federation with these columns standardised at each party, and its schema with the new ranges."""
        schema = rescaled(schema_of(federation), self)
        declares = tuple(schema[name] for name in self.names)
        return federation.prepare(rescale, declares=declares, names=self.names, means=self.means, scales=self.scales)

    def apply_to_frame(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """Return a data frame with these columns standardised, for `Fit.predict`."""
        columns = {name: frame[name].to_numpy() for name in self.names}
        return frame.assign(**rescale(columns, names=self.names, means=self.means, scales=self.scales))


def rescaled(schema: Schema, scale: Scaling | None) -> Schema:
    """Return the schema of standardised columns, with their new ranges.

    Raises
    ------
    SchemaInvalid (HR-409)
        One of them is the weight or the offset of the records.
    """
    for name, mean, size in zip(scale.names, scale.means, scale.scales, strict=True) if scale else ():
        column = schema[name]
        if column.role in ("weight", "offset"):
            raise SchemaInvalid(
                f"{name!r} is the {column.role} of the records, which means what it says.", remedy="Leave it out."
            )
        low, high = (None if end is None else (end - mean) / size for end in (column.low, column.high))
        schema = schema.replace(replace(column, kind="number", unit="sd", low=low, high=high))
    return schema


def scaling(federation: Federation, columns: Sequence[str] | None = None) -> Scaling:
    """Ask for the means and standard deviations of columns: every number and integer among the features by default.

    Releases
    --------
    As `moments`.
    """
    schema = schema_of(federation)
    if columns is None:
        columns = [name for name in schema.features if schema[name].kind in ("number", "integer")]
        columns = [name for name in columns if not schema[name].shape]
    found = moments(federation, names_of(chosen(schema, columns, ("number", "integer"))))
    scales = tuple(float(sd) if sd > 0 else 1.0 for sd in found.sd)
    return Scaling(found.names, tuple(map(float, found.mean)), scales)


def standardise(federation: Federation, columns: Sequence[str] | None = None) -> Federation:
    """Return the federation with columns of mean 0 and standard deviation 1; `scaling` keeps what was subtracted."""
    return scaling(federation, columns).apply(federation)
