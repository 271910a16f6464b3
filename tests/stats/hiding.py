"""A stand-in for aggregations that hide rows: rows become fixed-point numbers within their declared range, or are refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.aggregation import Plain
from hedgerow.crypto.fixedpoint import encoding_for


@dataclass(frozen=True)
class Hiding(Plain):
    """Adds up rows in fixed point, as a masked sum would; `records` bounds the records of a party."""

    name: str = "stand-in"
    hides_rows: bool = True
    bits: int = 64
    records: float = 400.0
    largest: float | None = None

    def ask(self, engine, outbox, sessions=None):
        inbox = engine.exchange(replace(outbox, keep_rows=True))
        settings = {"parties": len(outbox.ids), "bits": self.bits, "records": self.records, "largest": self.largest}
        encoding = encoding_for(outbox.release, inbox.layout, **settings)
        total = encoding.encode(np.asarray(inbox.rows)).sum(0, dtype=f"uint{self.bits}")
        return replace(inbox, rows=None, total=encoding.decode(total))
