"""What identifies a plan: the file of owners, all that its study says, and what was known of the loss.

owners    the file's text, and that of its CSV file
study     every key but where data and ledger lie, or [model], which is part of the file
known     curvature, what steps leave, amplification, scatter and least loss, to six digits: they follow from public
          records, a question's release, bounds or numbers, so that another file of records makes another plan
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

from hedgerow.market.forecasts.known_loss import KnownLoss

from ..study import Study

PLACES = {"data": {"path", "parties"}, "budget": {"ledger"}}
"""Keys of a study that say where things lie on a machine."""


def plan_digest(owners: str, study: Study | None, known: KnownLoss) -> str:
    """Sixteen hexadecimal digits of SHA-256; `owners` is the digest of the file."""
    said = None if study is None else study.model_dump(mode="json", exclude=PLACES)
    p = known.propagation
    h, f = p.eigenvalues, known.least
    shares = (h / max(h.max(), np.finfo(float).tiny), h * np.square(p.left) / f, p.offset / f)  # a rest of rounding is zero
    told = [[f"{value:.6f}" for value in np.round(np.atleast_1d(each), 6) + 0.0] for each in shares]
    told += [[f"{value:.6g}" for value in np.atleast_1d(each)] for each in (h.max(), p.amplification, known.sampling, f)]
    whole = json.dumps({"owners": owners, "study": said, "known": told}, sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]
