"""Standardised columns of a formula: which they are, and coefficients in the columns' own units afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from .columns import schema_of
from .design import Design
from .factors import Number, Term
from .scaling import Scaling, scaling

KINDS = ("number", "integer")


def columns_to_scale(spec: Design, *, target: bool) -> tuple[str, ...]:
    """Return the numbers and integers that stand by themselves in a formula.

    Parameters
    ----------
    target : bool
        Whether the target is scaled too, where it is a number.

    Raises
    ------
    SettingsInvalid (HR-511)
        One of them is read inside an expression as well, such as log(age), which means something else once it is scaled.
    """
    numbers = [factor for term in spec.terms for factor in term.factors if isinstance(factor, Number)]
    if target and isinstance(spec.response, Number):
        numbers.append(spec.response)
    plain = [factor.text for factor in numbers if factor.text in spec.schema and spec.schema[factor.text].kind in KINDS]
    inside = {
        name for factor in (*numbers, *spec._offset) if factor.text not in spec.schema for name in factor.reads(spec.schema)
    }
    inside |= {name for name in (spec.offset, spec.weights) if name in spec.schema}
    taken = sorted(inside & set(plain))
    if taken:
        raise SettingsInvalid(
            f"{taken[0]!r} stands by itself in {spec.formula!r} and is read elsewhere too, where its own units count.",
            remedy="Prepare the column beforehand, or give a Scaling of other columns: standardise=scaling(federation, [...]).",
        )
    return tuple(dict.fromkeys(plain))


def scaling_of(federation: Federation, spec: Design, *, target: bool) -> Scaling:
    """Ask for the means and standard deviations of the columns of a formula, as `hedgerow.stats.scaling`."""
    names = columns_to_scale(spec, target=target)
    return scaling(federation, names) if names else Scaling((), (), ())


def scaled(federation: Federation, scale: Scaling | None) -> Federation:
    """The federation with columns standardised; itself without a scaling."""
    return federation if scale is None or not scale.names else scale.apply(federation)


def scaling_of_state(state: Any) -> Scaling | None:
    """What standardised the columns of a state, which keeps `names`, one to a line, `means` and `scales`."""
    names = tuple(state.names.split("\n")) if state.names else ()
    return Scaling(names, tuple(state.means.tolist()), tuple(state.scales.tolist())) if names else None


def kept_in_state(scale: Scaling | None) -> dict[str, Any]:
    """The same as fields of a state."""
    known = scale or Scaling((), (), ())
    return {"names": "\n".join(known.names), "means": np.array(known.means), "scales": np.array(known.scales)}


@dataclass(frozen=True)
class Units:
    """How to turn coefficients of standardised columns into those of the columns as they are: `matrix @ beta + shift`."""

    matrix: Array
    shift: Array

    @classmethod
    def of(cls, spec: Design, scale: Scaling) -> Units:
        """Read the terms of a design.

        Raises
        ------
        SettingsInvalid (HR-511)
            A scaled column is part of a product, or there is no intercept to take up the means.
        """
        moments = {name: (m, s) for name, m, s in zip(scale.names, scale.means, scale.scales, strict=True)}
        matrix, start, constant = np.eye(spec.size), 0, None
        for term in spec.terms:
            constant = start if not term.factors else constant
            start += len(term.names)
        start = 0
        for term in spec.terms:
            found = [factor.text for factor in term.factors if isinstance(factor, Number) and factor.text in moments]
            if found:
                if len(term.factors) > 1 or constant is None:
                    why = "part of a product" if len(term.factors) > 1 else "scaled in a formula without an intercept"
                    raise SettingsInvalid(f"{found[0]!r} is {why}.", remedy="Read the coefficients in standard deviations.")
                mean, size = moments[found[0]]
                matrix[start, start] = 1 / size
                matrix[constant, start] = -mean / size
            start += len(term.names)
        shift = np.zeros(spec.size)
        text = spec.response.text if isinstance(spec.response, Number) else ""
        if text in moments:
            mean, size = moments[text]
            matrix *= size
            if constant is None:
                raise SettingsInvalid(f"the target {text!r} is scaled in a formula without an intercept.", remedy="Add one.")
            shift[constant] = mean
        return cls(matrix, shift)


def raw_coefficients(federation: Federation, formula: str, scale: Scaling, beta: Array) -> Array:
    """Return coefficients in the columns' own units, from those of standardised columns; shape (d,).

    Parameters
    ----------
    federation : Federation
        Not asked; for its schema.
    formula : str
        Of plain columns, categories and expressions that were not scaled, with an intercept.
    """
    units = Units.of(Design.of(formula, schema_of(federation)), scale)
    found: Array = units.matrix @ beta + units.shift
    return found


def without_intercept(terms: tuple[Term, ...]) -> Array:
    """Ones for the columns that a penalty holds back, zero for the intercept; shape (d,)."""
    return np.concatenate([np.full(len(term.names), 0.0 if not term.factors else 1.0) for term in terms])
