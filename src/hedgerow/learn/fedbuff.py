"""FedBuff: parties train at their own pace, and the server steps whenever K of them have answered.

    server:  keep M parties at work: whenever there is a place, send x, version v, to one that is idle
             on an answer:        add s(v - v_i) (y_i - x_{v_i}) to the buffer,   s(tau) = 1 / sqrt(1 + tau)
             when it holds K:     x <- x + server_rate / K * buffer;  v <- v + 1;  empty it
    party:   y_i <- local SGD from the x_{v_i} that it was sent

Time is simulated: a party needs exp(spread * normal) units of it, times a pace of its own, exp(unequal * normal); the server
draws both. A round is one step of the server, and asks twice: `each` of the parties that began since the last step trains from
the model it is sent and keeps the change, with the version, and nothing leaves; then one `sum` over the K whose time is up. So
one sum holds answers to several versions, and is noised and charged once, and the server keeps no old model. Answers that come
at the same time are taken together, before places are filled.

Releases : sum of s (y_i - x_{v_i}) over K parties, and how many of them had work; once a round.
State    : each party's last change, of shape (d,), and the version it began with, -1 once handed in. At the server who is at
           work, since which version, until when: arrays, so that a run resumes as it was.
Unit     : party. The schedule does not depend on data, and is public. Which parties answer depends on their pace, so no
           amplification is claimed: the ledger has "given" with K parties, which halves noise multipliers, and so covers a
           party whose contribution is replaced by any other. It does not cover a federation with one party more, whose whole
           schedule could differ. Behind a clip, K is the denominator, and the number is not sent.
Source   : Nguyen et al., AISTATS 2022, Algorithm 1, with the weights s for stale answers that its experiments use. Differs: no
           party answers twice in one buffer; work that would be staler than `max_staleness` is given up; where a party of the
           K dropped out, the divisor is how many had work. With M = K and no spread it is FedAvg of equal parties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.display import displayed
from hedgerow.errors import NobodyAnswered, SettingsInvalid

from .descent import Solver, descend
from .models import Model, Weights
from .results import declares
from .settings import Settings, Weighting
from .training import Training, above, at_least, equal_parties, mean_of

FREE = -1
"""In place of a party: nobody works here. In place of a version: nothing to hand in."""


@displayed
@dataclass(frozen=True)
class BufferState:
    """A model after a step of the server, and who is at work.

    Attributes
    ----------
    time : float
        Simulated time of the step; one is the median time of a party's work.
    staleness : float
        Mean number of versions between what the step's parties began with and the model that they changed.
    working, since : int arrays of shape (M,)
        Which party is at work in each place, and the version that it is sent.
    due : array of shape (M,)
        When it will be done.
    pace : array of shape (n_parties,)
        Each party's own factor of time.
    """

    round: int
    weights: Weights
    time: float
    staleness: float
    working: np.ndarray
    since: np.ndarray
    due: np.ndarray
    pace: np.ndarray


@dataclass
class Places:
    """The parties at work, as the server simulates them; arrays as in `BufferState`."""

    working: np.ndarray
    since: np.ndarray
    due: np.ndarray
    pace: np.ndarray
    time: float
    spread: float

    def fill(self, version: int, but: list[int], rng: Any) -> None:
        """Give free places to idle parties, `but` those in the buffer, drawn without replacement."""
        free = np.flatnonzero(self.working == FREE)
        idle = np.setdiff1d(np.arange(len(self.pace)), np.append(self.working, np.array(but, int)))
        n = min(len(free), len(idle))
        chosen = rng.permutation(idle)[:n]
        self.working[free[:n]], self.since[free[:n]] = chosen, version
        self.due[free[:n]] = self.time + self.pace[chosen] * np.exp(self.spread * rng.standard_normal(n))

    def leave(self, places: np.ndarray) -> None:
        """Free some places."""
        self.working[places], self.due[places] = FREE, np.inf

    def until(self, k: int, version: int, rng: Any) -> tuple[list[int], list[int], list[int]]:
        """Let time pass until k parties have answered: who they are, what they began with, and who was sent this version."""
        answered, began, sent = [], [], list(self.working[self.since == version])
        while len(answered) < k:
            self.time = float(self.due.min())
            came = np.flatnonzero(self.due == self.time)[: k - len(answered)]
            answered += self.working[came].tolist()
            began += self.since[came].tolist()
            self.leave(came)
            if len(answered) < k:
                before = self.working.copy()
                self.fill(version, answered, rng)
                sent += self.working[self.working != before].tolist()
        return answered, began, sent


@travels
def work(server: Mapping[str, np.ndarray], party: Party, rng: Any, *, model: Model, solver: Solver) -> None:
    """Train from the weights sent, and keep the change with their version."""
    found = descend(server["x"], party, rng, model=model, solver=solver)
    party.state |= {"change": found.change, "version": np.asarray(server["version"])}


@travels
def no_work(now: np.ndarray, party: Party, *, size: int) -> dict[str, np.ndarray]:
    """A party that was never sent a model has nothing to hand in."""
    return {"change": np.zeros(size, np.float32), "version": np.asarray(FREE)}


@local(stackable=True)
def hand_in(now: np.ndarray, party: Party, rng: Any, *, weighting: Weighting) -> Mapping[str, np.ndarray]:
    """Contribute the change that the party keeps, the smaller the more versions it missed."""
    version = party.state["version"]
    has = version != FREE
    scale = np.where(has, 1 / np.sqrt(1.0 + np.maximum(now - version, 0)), 0.0).astype(np.float32)
    party.state["version"] = np.full_like(version, FREE)
    update = party.state["change"] * scale[..., None]
    return {"update": update} | ({} if weighting == "expected" else {"n": has.astype(float)})


@program("Buffered asynchronous averaging in simulated time (Nguyen et al. 2022).", **declares(rounds=2))
def fedbuff(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    buffer: int | None = None,
    concurrency: int | None = None,
    spread: float = 0.5,
    unequal: float = 0.0,
    max_staleness: int = 20,
    server_rate: float = 1.0,
    start: BufferState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[BufferState]:
    """FedBuff (Nguyen et al. 2022, Algorithm 1), in simulated time.

    Parameters
    ----------
    buffer : int, optional
        K, answers in a step of the server; by default 10, or half of the parties where they are fewer than 20.
    concurrency : int, optional
        M, parties at work at a time; by default twice the buffer, at most everybody.
    spread : float
        Log-standard-deviation of the time that a party needs, from one time to the next.
    unequal : float
        Log-standard-deviation of the parties' own paces: above zero, slow parties answer rarely, and late.
    max_staleness : int
        Work that would be staler than this is given up, and its place filled anew.
    server_rate : float
        Step of the server along the mean change.

    **settings
        As `hedgerow.learn.fedavg`, but for rate, size and spare: who takes part is decided above. Parties count equally.
    """
    n_parties = federation.size
    k = min(10, -(-n_parties // 2)) if buffer is None else buffer
    m = min(2 * k, n_parties) if concurrency is None else concurrency
    above(0.0, buffer=k, concurrency=m)
    at_least(0.0, spread=spread, unequal=unequal, max_staleness=max_staleness, server_rate=server_rate)
    if k > n_parties or m > n_parties or (start is not None and len(start.working) != m):
        raise SettingsInvalid(
            f"buffer is {k} and concurrency is {m}.", remedy=f"There are {n_parties} parties; both stay as begun."
        )
    training = Training.of(
        federation, module, rounds, settings, lawful=equal_parties(settings, "rate", "size", "spare", "every")
    )
    model, x, names = training.model, training.begin(start), federation.names
    if start is None:
        rng = federation.stream(0, "pace")
        pace = np.exp(unequal * rng.standard_normal(n_parties))
        places = Places(np.full(m, FREE), np.zeros(m, int), np.full(m, np.inf), pace, 0.0, spread)
        places.fill(0, [], rng)
    else:
        kept = {name: np.array(getattr(start, name)) for name in ("working", "since", "due", "pace")}
        places = Places(**kept, time=start.time, spread=spread)

    def named(who: list[int]) -> Federation:
        return training.federation.pick([names[i] for i in who])

    for t in training.left(start):
        rng = federation.stream(t + 1, "pace")
        answered, began, sent = places.until(k, t, rng)
        if sent:
            with suppress(NobodyAnswered):  # then they have no work to hand in
                local_work = partial(work, model=model, solver=training.solver_in(t))
                named(sent).each(local_work, {"x": x, "version": np.asarray(t)})
        cohort, ask = named(answered), partial(hand_in, weighting=training.weighting)
        total = cohort.sum(ask, np.asarray(t), init=partial(no_work, size=len(x)))
        x = (x + server_rate * mean_of(total, cohort)).astype(np.float32)
        places.leave(np.flatnonzero((places.working != FREE) & (t + 1 - places.since > max_staleness)))
        places.fill(t + 1, [], rng)
        own = (value.copy() for value in (places.working, places.since, places.due, places.pace))
        yield BufferState(t + 1, model.named(x), places.time, t - float(np.mean(began)), *own)
