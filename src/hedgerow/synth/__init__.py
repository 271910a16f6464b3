"""Synthetic tables: records that are made up from bounded sums, and how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.data.synthetic_table import Provenance, SyntheticTable, provenance_of

    from .assessed import Quality
    from .closest import Closeness, closest, nearer_share
    from .codes import Codes
    from .conditions import Conditions
    from .copula import CopulaState, copula, copula_sums
    from .copula_draws import CopulaSynthesizer
    from .drawing import TreeSynthesizer
    from .gan import (
        Ctgan,
        CtganState,
        DpCtganState,
        DpTvae,
        DpTvaeState,
        PateGanState,
        Tvae,
        TvaeState,
        ctgan,
        ctgan_rounds,
        dp_ctgan,
        dp_ctgan_rounds,
        dp_tvae,
        dp_tvae_rounds,
        pate_gan,
        pate_gan_rounds,
        tvae,
        tvae_rounds,
    )
    from .marginals import marginals, one_way_tables
    from .measured import TablesState
    from .metrics import correlation_similarity, ks_complement, ks_of_counts, tv_complement, tv_of_counts
    from .mixture import MixtureSynthesizer
    from .mst import mst, spanning_tree
    from .quality import QualityState, compared, measured_quality, quality, real_tables
    from .rap import pair_tables, rap
    from .synthesizer import Synthesizer
    from .tan import class_trees, tan
    from .tstr import Utility, tstr
    from .tstr_at_parties import PartyScore, tstr_at_parties

__all__ = [
    "Closeness",
    "Codes",
    "Conditions",
    "CopulaState",
    "CopulaSynthesizer",
    "Ctgan",
    "CtganState",
    "DpCtganState",
    "DpTvae",
    "DpTvaeState",
    "MixtureSynthesizer",
    "PartyScore",
    "PateGanState",
    "Provenance",
    "Quality",
    "QualityState",
    "Synthesizer",
    "SyntheticTable",
    "TablesState",
    "TreeSynthesizer",
    "Tvae",
    "TvaeState",
    "Utility",
    "class_trees",
    "closest",
    "compared",
    "copula",
    "copula_sums",
    "correlation_similarity",
    "ctgan",
    "ctgan_rounds",
    "dp_ctgan",
    "dp_ctgan_rounds",
    "dp_tvae",
    "dp_tvae_rounds",
    "ks_complement",
    "ks_of_counts",
    "marginals",
    "measured_quality",
    "mst",
    "nearer_share",
    "one_way_tables",
    "pair_tables",
    "pate_gan",
    "pate_gan_rounds",
    "provenance_of",
    "quality",
    "rap",
    "real_tables",
    "spanning_tree",
    "tan",
    "tstr",
    "tstr_at_parties",
    "tv_complement",
    "tv_of_counts",
    "tvae",
    "tvae_rounds",
]

lazily(__name__, checks=True)
