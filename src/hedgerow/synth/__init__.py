"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .codes import Codes
    from .conditions import Conditions
    from .copula import CopulaState, copula, copula_sums
    from .copula_draws import CopulaSynthesizer
    from .drawing import TreeSynthesizer
    from .marginals import marginals, one_way_tables
    from .measured import TablesState
    from .metrics import correlation_similarity, ks_complement, ks_of_counts, tv_complement, tv_of_counts
    from .mixture import MixtureSynthesizer
    from .mst import mst, spanning_tree
    from .rap import pair_tables, rap
    from .synthesizer import Synthesizer
    from .table import Provenance, SyntheticTable, provenance_of
    from .tan import class_trees, tan
    from .tstr import Utility, tstr

__all__ = [
    "Codes",
    "Conditions",
    "CopulaState",
    "CopulaSynthesizer",
    "MixtureSynthesizer",
    "Provenance",
    "Synthesizer",
    "SyntheticTable",
    "TablesState",
    "TreeSynthesizer",
    "Utility",
    "class_trees",
    "copula",
    "copula_sums",
    "correlation_similarity",
    "ks_complement",
    "ks_of_counts",
    "marginals",
    "mst",
    "one_way_tables",
    "pair_tables",
    "provenance_of",
    "rap",
    "spanning_tree",
    "tan",
    "tstr",
    "tv_complement",
    "tv_of_counts",
]

lazily(__name__, checks=True)
