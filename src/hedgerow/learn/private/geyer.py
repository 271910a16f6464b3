"""Geyer's algorithm: client-side private federated optimisation, as printed and as it should be.

    as printed                                              corrected, the default
    ----------------------------------------------------    ---------------------------------------------------
    exactly m_t parties, at random                          every party by itself with probability m_t / K
    S = median of the cohort's norms, looked up             S follows a median that is asked with noise, and charged
    accounted as if parties had joined by themselves        accounted as they are drawn
    stops where the delta so claimed exceeds Q              stops where delta exceeds Q, before the question is asked

    w <- w + 1/m_t ( sum_k u_k / max(1, |u_k| / S) + N(0, sigma^2 S^2) )                 both

The median is a function of the parties' data without noise, so no finite epsilon holds for what is printed: the server here
sees every update of the cohort, and the ledger says "nonprivate". The paper says so itself (section 3, Choosing S). One
party more or less in a cohort of fixed size pushes another out, which moves the sum by up to 2 S instead of S. What the
paper would claim is computed beside, and called a claim.

Releases : as printed, every update of the cohort; corrected, as `dp_fedavg`. Once per round.
State    : none.
Unit     : party.
Source   : Geyer, Klein & Nabi 2017, Algorithm 1. The code that its authors published differs from the paper: it lengthens
           short updates and leaves long ones, and clips each layer at a median of its own. Neither is followed here; tests
           keep both as twins that must fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.core.declaration import program
from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.core.federation import Federation
from hedgerow.core.randomness import Entropy
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy import Gaussian
from hedgerow.privacy.accounting import delta

from ..local import local_sgd
from ..settings import Settings
from ..training import Training
from .dp_fedavg import PrivateState, delta_threshold, dp_fedavg, update_scale
from .results import declares
from .schedules import Growth, grown
from .views import Inputs, step_of


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper would claim of what it prints, and why that is not proved; "" of the corrected algorithm."""
    if not settings["printed"]:
        return ""
    return (
        f"at epsilon {settings['target_epsilon']:g}, by a moments accountant for parties that join by themselves. The clip is "
        "a median that is looked up without noise, and cohorts have a fixed size, so no finite epsilon holds"
    )


@program(
    "Growing cohorts, a clip at the median, a threshold for delta (Geyer et al. 2017).",
    claim=claim,
    **declares(rounds=2, parties=3),
)
def geyer(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    parties: int,
    last_parties: int | None = None,
    growth: Growth = "geometric",
    noise_multiplier: float = 1.0,
    target_epsilon: float = 8.0,
    threshold: float = 1e-3,
    clip: float = 1.0,
    printed: bool = False,
    inputs: Inputs = "columns",
    start: PrivateState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[PrivateState]:
    """Geyer's Algorithm 1: a cohort that may grow, a clip at the median, and a threshold for delta.

    Parameters
    ----------
    rounds : int
        Rounds at most, those before `start` included.
    parties, last_parties : int
        m_t of the first and the last round: so many parties, or so many in expectation where corrected.
    growth : {"constant", "linear", "geometric"}
        How m_t grows.
    noise_multiplier : float
        sigma: the noise's standard deviation over the clip.
    target_epsilon, threshold : float
        Training ends where delta at this epsilon would exceed the threshold Q.
    clip : float
        Corrected: where the clip begins, which then follows a noisy median.
    printed : bool
        Do what the paper prints, through an open channel: no epsilon holds. Otherwise the federation is protected and
        limited here, so that its own channel and budget must be empty or the same.
    inputs : {"columns", "pooled scattering"}
        What the module reads: the columns as they are, or fixed features of images (see `views`).
    start
        As of `dp_fedavg`, and so are **settings and what it yields. As printed, `spent` is the delta that the paper would
        claim by its moments accountant: no guarantee, and statements and tables call it claimed, not proved.

    Releases
    --------
    As printed, every update of a cohort, at no finite epsilon; corrected, as `dp_fedavg`.

    Raises
    ------
    SettingsInvalid (HR-511), BudgetExhausted (HR-213)
    """
    n = federation.size
    if not 1 <= parties <= n or not 1 <= (last_parties or parties) <= n:
        raise SettingsInvalid(f"cohorts of {parties} to {last_parties} of {n} parties.", remedy="At least one, at most all.")
    rates = grown(parties / n, last_parties and last_parties / n, rounds, growth)
    if printed:
        return _printed(federation, module, rates, noise_multiplier, target_epsilon, threshold, inputs, start, settings)
    if federation.ledger.limit != delta_threshold(target_epsilon, threshold):
        federation = federation.within(delta_threshold(target_epsilon, threshold))  # refuses to replace another
    private = federation.protect(mechanism=Gaussian(noise_multiplier))
    more = {"clip": clip, "rates": list(rates), "inputs": inputs, "delta_at": target_epsilon, "start": start}
    return dp_fedavg(private, module, rounds=rounds, **more, **settings)  # type: ignore[arg-type]


def claimed_delta(rates: tuple[float, ...], noise_multiplier: float, epsilon: float) -> float:
    """The delta that the paper's accountant returns: moments, as if each party had joined by itself."""
    event = (Event("gaussian", noise_multiplier),)
    charges: Counter[Charge] = Counter((Sampling("poisson", q) if q < 1 else Sampling(), event) for q in rates)
    return delta(charges, epsilon=epsilon, adjacency="add-remove", accountant="moments")


def _same(i: int, *, source: Entropy) -> Entropy:
    return source


def at_median(updates: np.ndarray) -> float:
    """S as printed: the median length of updates of shape (m, d)."""
    return max(float(np.median(np.linalg.norm(updates.astype(np.float64), axis=1))), np.finfo(np.float32).tiny)


def _printed(
    federation: Federation,
    module: nn.Module,
    rates: tuple[float, ...],
    noise_multiplier: float,
    epsilon: float,
    threshold: float,
    inputs: Inputs,
    start: PrivateState | None,
    settings: Settings,
) -> Iterator[PrivateState]:
    if not federation.protection.open:
        raise SettingsInvalid(
            "as printed, the server looks at every update, and this channel hides them.",
            remedy="Ask through an unprotected federation, or leave printed out.",
        )
    step = step_of(federation.schema, inputs)
    ready = federation if step is None else step.at_parties(federation)
    training = Training.of(ready, module, len(rates), settings, lawful=("expected",))
    model, w, noise = training.model, training.begin(start), Gaussian(noise_multiplier)
    layout = Layout((("update", (w.size,)),))
    for t in training.left(start):
        claim = claimed_delta(rates[: t + 1], noise_multiplier, epsilon)
        if claim > threshold:
            return
        m = max(round(rates[t] * federation.size), 1)
        cohort = training.federation.sample(size=m)
        rows = np.stack([sent["update"] for sent in cohort.gather(training.ask(local_sgd, t), w).values()])
        S = at_median(rows)
        bound, source = l2(S), federation.stream(federation.asked, "noise on the clipped sum").entropy
        steps = noise.at_party(rows.astype(np.float32), bound, layout, partial(_same, source=source))
        mean = noise.at_server(steps.sum(0, dtype=np.int64), bound, layout, source) / m
        w = (w + mean).astype(np.float32)
        told = {"spent": claim, "scale": update_scale(mean, noise_multiplier * S / m)}
        below = float((np.linalg.norm(rows, axis=1) <= S).mean())
        yield PrivateState(t + 1, model.named(w), np.zeros_like(w), S, below, **told)
