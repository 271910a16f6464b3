"""Proofs that a row, shared among aggregators, obeys a bound: whoever sees shares learns that and nothing else.

field, field64, transforms     arithmetic modulo a prime, and polynomials by their values
xof                            streams of bytes and numbers from seeds, domains and contexts
flp, circuits                  fully linear proofs, and what they can say of a row
prio3, pine                    sharing with proofs: ranges, sums, one-hot rows; Euclidean norms
row_proof, bounded             what a protocol asks of any of them, and which one a bound needs

Pure mathematics: no keys are agreed on, nothing is sent. A lie is found if all aggregators follow the protocol; a row stays
hidden if one of them does. Python does not run in constant time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bounded import l1_proof, l2_proof, one_hot_proof, range_proof
    from .row_proof import RowProof, Verified

__all__ = ["RowProof", "Verified", "l1_proof", "l2_proof", "one_hot_proof", "range_proof"]

lazily(__name__)
