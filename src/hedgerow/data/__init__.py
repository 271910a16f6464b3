"""Tables, schemas, the catalogue of public data sets, and partitions into parties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .cases import LeftOut, complete_cases
    from .catalogue import load, names
    from .column import Column
    from .columns_apart import columns_by_correlation, columns_by_importance, columns_by_name
    from .dictionary.dictionary import Dictionary
    from .dictionary.local_columns import LocalColumns
    from .dictionary.validation import Validation, check_file
    from .files import convert
    from .inference import infer
    from .join import join
    from .loaders import read, read_idx
    from .partition import LabelCounts, Partition, Partitioner
    from .partitioners import PARTITIONERS, partitioner
    from .schema import Schema
    from .shift import concept_drift, concept_shift, covariate_shift, feature_noise
    from .skew import dirichlet_labels, dirichlet_quantity, labels_per_party, shards
    from .splits import by_column, iid, in_order, of_sizes, stores
    from .table import Table

__all__ = [
    "PARTITIONERS",
    "Column",
    "Dictionary",
    "LabelCounts",
    "LeftOut",
    "LocalColumns",
    "Partition",
    "Partitioner",
    "Schema",
    "Table",
    "Validation",
    "by_column",
    "check_file",
    "columns_by_correlation",
    "columns_by_importance",
    "columns_by_name",
    "complete_cases",
    "concept_drift",
    "concept_shift",
    "convert",
    "covariate_shift",
    "dirichlet_labels",
    "dirichlet_quantity",
    "feature_noise",
    "iid",
    "in_order",
    "infer",
    "join",
    "labels_per_party",
    "load",
    "names",
    "of_sizes",
    "partitioner",
    "read",
    "read_idx",
    "shards",
    "stores",
]

lazily(__name__, checks=True)
