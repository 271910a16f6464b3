"""Correlations, variance inflation and principal components of columns that lie apart: all from one Gram matrix.

Releases : the Gram matrix of a constant and the columns, once.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import NotIdentified, SettingsInvalid
from hedgerow.stats.columns import NUMERIC, chosen
from hedgerow.stats.factors import Number, Term

from .gram import Gram, gram
from .linear import DEPENDENT
from .terms import admit_column, joint_schema, own_units, refuse_shared

if TYPE_CHECKING:
    import pandas

    from .aligned import Aligned


def products_of(aligned: Any, columns: Sequence[str] | None) -> Gram:
    """Ask for the Gram matrix of columns of numbers; of every feature and target that one party alone holds by default."""
    schema, owners, shared = joint_schema(aligned.schemas)
    refuse_shared(columns or (), shared)
    read = chosen(schema, columns, NUMERIC)
    for column in read:
        admit_column(column)
    return gram(aligned, [(owners[c.name], own_units(Term((Number(c.name),)), schema)) for c in read])


def correlation(aligned: Aligned, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Pearson's correlations of columns that lie apart, as a data frame.

    Parameters
    ----------
    aligned : Aligned
    columns : sequence of str, optional
        Numbers, integers or binary columns of any parties, with declared ranges; by default every feature and target.

    Raises
    ------
    MissingColumn (HR-403), ColumnsDiffer (HR-407), SchemaInvalid (HR-409), UnboundedSum (HR-210), DisclosureExceeded (HR-216)
        Before any party is asked.
    NotIdentified (HR-320)
        A column is constant.
    """
    import pandas

    found = products_of(aligned, columns)
    return pandas.DataFrame(correlations(found), index=list(found.names), columns=list(found.names))


def vif(aligned: Aligned, columns: Sequence[str] | None = None) -> pandas.Series:
    """Variance inflation factors of columns that lie apart: the diagonal of the inverse of their correlations.

    Parameters
    ----------
    aligned, columns
        As `correlation`.

    Raises
    ------
    NotIdentified (HR-320)
        Columns are linear combinations of one another; others as `correlation`.
    """
    import pandas

    found = products_of(aligned, columns)
    R = correlations(found)
    if np.linalg.eigvalsh(R)[0] < DEPENDENT:
        raise NotIdentified("columns are linear combinations of one another.", remedy="Leave one of them out.")
    return pandas.Series(np.diag(np.linalg.inv(R)), index=list(found.names), name="VIF")


@displayed
@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Principal components of columns that lie apart; k of d columns.

    Attributes
    ----------
    names : tuple of str
    variance : array of shape (k,)
        Of the components, falling: eigenvalues of the covariance matrix (n - 1 in the denominator), or of the correlations.
    share : array of shape (k,)
        Of the total variance.
    axes : array of shape (k, d)
        Unit vectors, each with its largest loading above zero.
    mean, scale : arrays of shape (d,)
        What is subtracted from a column, and what it is divided by.
    """

    names: tuple[str, ...]
    variance: Array
    share: Array
    axes: Array
    mean: Array
    scale: Array

    def to_frame(self) -> pandas.DataFrame:
        """Loadings, with a column for each component."""
        import pandas

        heads = [f"PC{i + 1} ({part:.1%})" for i, part in enumerate(self.share)]
        return pandas.DataFrame(self.axes.T, index=list(self.names), columns=heads)

    def __str__(self) -> str:
        return str(self.to_frame().to_string())


def pca(
    aligned: Aligned, columns: Sequence[str] | None = None, *, components: int | None = None, standardised: bool = True
) -> PrincipalAxes:
    """Principal components of columns that lie apart.

    Parameters
    ----------
    aligned, columns
        As `correlation`.
    components : int, optional
        How many; all by default.
    standardised : bool
        Whether columns are divided by their standard deviations.
    """
    if components is not None and components < 1:
        raise SettingsInvalid(f"components is {components}.", remedy="Take one or more.")
    found = products_of(aligned, columns)
    matrix = correlations(found) if standardised else found.covariance
    values, vectors = np.linalg.eigh(matrix)
    k = min(components or len(values), len(values))
    values, axes = values[::-1], vectors.T[::-1]
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(1)]
    axes = axes * np.sign(largest)[:, None]
    scale = np.sqrt(np.diag(found.covariance)) if standardised else np.ones(len(found.names))
    return PrincipalAxes(found.names, values[:k], values[:k] / values.sum(), axes[:k], found.mean, scale)


def correlations(found: Gram) -> Array:
    """Correlations (d, d); units of columns drop out.

    Raises
    ------
    NotIdentified (HR-320)
    """
    covariance = found.own_covariance
    variance = np.diag(covariance)
    if not (variance > DEPENDENT).all():
        flat = [name for name, one in zip(found.names, variance, strict=True) if not one > DEPENDENT]
        raise NotIdentified(f"{flat} are constant, or noise is larger than their variance.", remedy="Leave them out.")
    sd = np.sqrt(variance)
    R: Array = covariance / np.outer(sd, sd)
    np.fill_diagonal(R, 1.0)
    return R
