"""Two forms of one algorithm: what a paper prints, and what a proof is known of.

printed      asked through an open channel, with the paper's own noise: the ledger says nonprivate, and what the paper would
             claim is called a claim
corrected    bounds per record, noise of the channel, everything charged
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.privacy.accounting import calibrate
from hedgerow.privacy.mechanisms import Gaussian
from hedgerow.privacy.shares import BudgetShares, Share

Form = Literal["printed", "corrected"]


def checked(form: Form, federation: Federation, epsilon: float | None) -> bool:
    """Whether a paper's form is asked for, which needs an epsilon and an open channel.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
    """
    if form not in ("printed", "corrected"):
        raise SettingsInvalid(f"form is {form!r}.", remedy="Say 'printed' or 'corrected'.")
    if form == "corrected":
        return False
    if epsilon is None:
        raise SettingsInvalid("the printed form without an epsilon.", remedy="Give epsilon=1.0: its noise follows from it.")
    if not federation.protection.open:
        raise UnlawfulChannel(
            "as printed, the server adds the paper's own noise to what it sees exactly, and this channel protects sums.",
            remedy="Ask through an unprotected federation, or take form='corrected'.",
        )
    return True


def descending(
    federation: Federation, epsilon: float | None, delta: float | None, rounds: int, sampling_rate: float
) -> Federation:
    """The federation with the least Gaussian noise with which so many noisy steps keep a budget.

    Without an epsilon it stays as it is, and the noise is its channel's.
    """
    planned = BudgetShares(epsilon, delta).handles(federation, {"steps": Share(1.0, rounds)})["steps"]
    if epsilon is None or not delta or sampling_rate >= 1.0:
        return planned
    return federation.protect(
        mechanism=Gaussian(calibrate(epsilon, delta, rounds=rounds, rate=sampling_rate, sampling="records"))
    )


def seeded(seed: int) -> str:
    """What the purpose of a stream ends with, so that fits with unlike seeds on one federation draw apart."""
    return f", seed {seed}" if seed else ""


def claimed(settings: Mapping[str, Any], why: str, what: str = "") -> str:
    """What a paper would claim of its printed form, and why that is not proved; "" of the corrected form."""
    if settings["form"] != "printed":
        return ""
    return f"{what or 'at epsilon ' + format(settings['epsilon'], 'g')}, by the paper's count. {why}"
