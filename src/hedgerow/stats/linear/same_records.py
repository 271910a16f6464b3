"""Whether every round of a fit is about the same records: the difference of two rounds' sums is about those that came or went.

Parties that stay away from one round, or come back, change sums by their own, and near the solution by little else.
"""

from __future__ import annotations

import warnings

from hedgerow.core.disclosure import LEAST, rounded
from hedgerow.errors import DisclosureExceeded, HedgerowWarning

from ..state import NewtonState


def mind_others(before: NewtonState, after: NewtonState) -> None:
    """Warn where a round was about other records than the one before, and refuse to go on where these are few.

    Numbers of records are sums of their weights.

    Warns
    -----
    HedgerowWarning
        It says how many were added or lost, as a multiple of `LEAST`.

    Raises
    ------
    DisclosureExceeded (HR-216)
        Fewer than `LEAST` were.
    """
    apart = after.n - before.n
    if before.round == 0 or before.n == 0 or abs(apart) < 0.5:
        return
    came = "added" if apart > 0 else "lost"
    if abs(apart) < LEAST - 0.5:
        raise DisclosureExceeded(
            f"round {after.round} of this fit {came} fewer than {LEAST} records, since parties came or went, and its sums less "
            "those of the round before are about them alone.",
            remedy="Begin again with the parties that are there; or resume from the last state when the others are back.",
            asked=True,
        )
    warnings.warn(
        f"round {after.round} of this fit {came} about {rounded(round(abs(apart)))} records, since parties came or went: its "
        "sums less those of the round before are about these alone. Begin again with the parties that are there to avoid it.",
        HedgerowWarning,
        stacklevel=3,
    )
