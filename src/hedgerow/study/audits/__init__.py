"""Audits of studies: trained once more with canaries, whose traces are compared with what the ledger states.

law       whether noise and contributions are those that were charged: estimates, intervals, and what the audit would see
bound     an epsilon that the run certainly has, from guesses about canaries
attack    how well the guesses tell canaries that are in from those that are not, beside the ceiling of (epsilon, delta)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .evidence import Evidence
    from .lights import StudyAudit, audit
    from .running import Audited, Scores, audited, witnessed

__all__ = ["Audited", "Evidence", "Scores", "StudyAudit", "audit", "audited", "witnessed"]

lazily(__name__)
