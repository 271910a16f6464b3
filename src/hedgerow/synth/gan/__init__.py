"""Networks that make up records: CTGAN and TVAE, trained where the records are, with and without noise; and PATE-GAN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .ctgan import Ctgan, CtganState, ctgan, ctgan_rounds
    from .encoding import Encoding
    from .tvae import Tvae, TvaeState, tvae, tvae_rounds

__all__ = ["Ctgan", "CtganState", "Encoding", "Tvae", "TvaeState", "ctgan", "ctgan_rounds", "tvae", "tvae_rounds"]

lazily(__name__, checks=True)
