"""Cryptography: keys, masks, secret sharing, and the aggregations that stand on them.

keys, streams, shamir, fixedpoint, paillier     primitives, on the `cryptography` package, numpy and (optional) gmpy2
secagg, pairwise, shares                        protocols, as conversations
privfl                                          gradients of a model that parties never see
aggregation                                     how these go into a channel
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .aggregation import AdditiveShares, Hidden, PairwiseMasks, SecAgg
    from .hidden_model import HiddenModel, PrivFL

__all__ = ["AdditiveShares", "Hidden", "HiddenModel", "PairwiseMasks", "PrivFL", "SecAgg"]

lazily(__name__, checks=True)
