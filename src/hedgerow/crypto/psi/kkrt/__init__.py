"""KKRT: alignment of two large lists by a batched oblivious pseudorandom function.

settings       `KKRT`, the alignment
protocol       both peers
base_ot        512 oblivious transfers of seeds
bits           streams as columns of bits, turned into rows
cuckoo         items into bins
code           items, code words, tags
matching       tags in order
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .settings import KKRT

__all__ = ["KKRT"]

lazily(__name__)
