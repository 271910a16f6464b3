"""What a run released, in the formats of others: safetensors, ONNX, scikit-learn, and a model card.

    hedgerow export runs/digits-fedavg-001 --to onnx

An export reads a run folder and nothing else: no records, no party, and nothing that the run had not released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .card import model_card
    from .folder import RunFolder, read_run
    from .formats import FORMATS, export

__all__ = ["FORMATS", "RunFolder", "export", "model_card", "read_run"]

lazily(__name__)
