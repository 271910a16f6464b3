"""A warning of proofs that hold nobody, since nobody said how many records one party may have."""

from __future__ import annotations

import warnings

from hedgerow.core.bound import unit_of
from hedgerow.core.release import Release
from hedgerow.errors import HedgerowWarning

RECORDS = 2.0**20
"""Records at one party, where nobody says how many there may be."""


def warn_of_loose_proofs(release: Release, records: float, verified: bool) -> None:
    """Warn where a row is proved to be that of 2^20 records, since nobody said how many a party may have."""
    per_record = release.clip is None and release.bounds is not None and unit_of(release.bounds) == "record"
    if verified and per_record and records == RECORDS:
        warnings.warn(
            f"each row is proved to be no more than {RECORDS:,.0f} records add up to: a party of a hundred records whose "
            "forged row is that of a million is not refused. Say how many records one party holds at most: "
            "AdditiveShares(verified=True, records=...), in a study protection.aggregation.records.",
            HedgerowWarning,
            stacklevel=2,
        )
