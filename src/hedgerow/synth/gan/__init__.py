"""Networks that make up records: CTGAN and TVAE, trained where the records are, with and without noise; and PATE-GAN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .ctgan import Ctgan, CtganState, ctgan, ctgan_rounds
    from .dp_ctgan import DpCtganState, dp_ctgan, dp_ctgan_rounds
    from .dp_tvae import DpTvae, DpTvaeState, dp_tvae, dp_tvae_rounds
    from .encoding import RowEncoding
    from .pate_gan import PateGanState, pate_gan, pate_gan_rounds
    from .tvae import Tvae, TvaeState, tvae, tvae_rounds

__all__ = [
    "Ctgan",
    "CtganState",
    "DpCtganState",
    "DpTvae",
    "DpTvaeState",
    "PateGanState",
    "RowEncoding",
    "Tvae",
    "TvaeState",
    "ctgan",
    "ctgan_rounds",
    "dp_ctgan",
    "dp_ctgan_rounds",
    "dp_tvae",
    "dp_tvae_rounds",
    "pate_gan",
    "pate_gan_rounds",
    "tvae",
    "tvae_rounds",
]

lazily(__name__, checks=True)
