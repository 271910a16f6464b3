"""Partitioners by name, as a study file names them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from hedgerow.errors import PartitionInvalid, suggestion

from .partition import Partitioner
from .shift import concept_drift, concept_shift, covariate_shift, feature_noise
from .skew import dirichlet_labels, dirichlet_quantity, labels_per_party, shards
from .splits import by_column, iid, in_order, of_sizes, stores

PARTITIONERS: dict[str, type[Partitioner]] = {
    scheme.__name__: scheme
    for scheme in (
        by_column,
        iid,
        in_order,
        of_sizes,
        stores,
        shards,
        labels_per_party,
        dirichlet_labels,
        dirichlet_quantity,
        feature_noise,
        covariate_shift,
        concept_drift,
        concept_shift,
    )
}


def partitioner(name: str, /, **settings: Any) -> Partitioner:
    """Return the partitioner called `name` with its settings.

    Parameters
    ----------
    name : str
        Such as `dirichlet_labels`.
    **settings : Any
        Such as `parties=20, alpha=0.5`.

    Raises
    ------
    PartitionInvalid (HR-408)
        The name or a setting is unknown, a setting is absent or out of its range.
    """
    if name not in PARTITIONERS:
        raise PartitionInvalid(f"no partitioner is called {name!r}.", remedy=suggestion(name, PARTITIONERS))
    scheme = PARTITIONERS[name]
    known = {field.name: field for field in fields(scheme)}  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            remedy = "A study names its partitioner by = ..." if setting == "name" else suggestion(setting, known)
            raise PartitionInvalid(f"{name} has no setting {setting!r}.", remedy=remedy)
    absent = [key for key, field in known.items() if field.default is MISSING and key not in settings]
    if absent:
        raise PartitionInvalid(f"{name} needs {', '.join(absent)}.", remedy=f"Give {', '.join(absent)}.")
    return scheme(**settings)
