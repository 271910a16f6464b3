"""How well the released model tells the parties' records from others: its leakage, which only a simulation can measure.

    members     the parties' records, less those that they held out
    others      the server's table: people of whom the model has seen nothing
    attack      who has a loss of at most the members' mean loss is taken for a member
    leakage     share of members that are taken for members, less that of the others

What a guarantee allows. With n members for certain, "a record is a member" and "it is none" differ by a record replaced, which
is twice a record added or removed: (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta), and no attack by the model
alone has a leakage above (e^(2 epsilon) - 1 + 2 (1 + e^epsilon) delta) / (e^(2 epsilon) + 1), in expectation over models and
over who is a member. This attack has its threshold from the members' exact losses besides, as if that number were released too:
it adds in the order of 1/n, one half at n = 1, so that with fewer than `LEAST_MEMBERS` members no limit is told. The noise
itself allows less than the epsilon that an accountant makes of it: delta at epsilon 0 for records replaced.

Releases : nothing; in a simulation exact numbers of the parties' records, outside any epsilon.
Unit     : record.
Source   : Jayaraman & Evans, USENIX Security 2019; the attack is Yeom et al., CSF 2018, Adversary 1. Differs: all records on
           both sides are used, also where there are not as many of one kind as of the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.attacks.observers.rates import MembershipRates, Rate, at_threshold, clopper_pearson
from hedgerow.data import Table
from hedgerow.market.epsilon.posterior import advantage, advantage_of
from hedgerow.privacy.accounting.definitions import group
from hedgerow.report import Grid, Outcome
from hedgerow.report.numerals import show

if TYPE_CHECKING:
    from .build import Built

LEAKAGE, AREA = "leakage", "membership AUC"
ALLOWED, BY_NOISE = "leakage at most", "leakage at most by the noise"
METRICS = (LEAKAGE, AREA, ALLOWED, BY_NOISE)
"""Metrics of a run; the last two where an epsilon is claimed."""

LEAST_MEMBERS = 100
"""Members below which no limit is told: the attack's threshold, which no model tells, moves its leakage by 1/n or so."""

FEW_FALSE = 0.01
"""A share of others that are accused, at which true positives are told where there are enough others."""


def with_membership(built: Built, state: Any, outcome: Outcome) -> Outcome:
    """What a run shows, and beside it what its model tells of membership, where the study asks for that."""
    if not built.study.evaluation.membership:
        return outcome
    found = membership_of(built, state)
    return replace(outcome, metrics={**outcome.metrics, **found.metrics}, grids=(*outcome.grids, found.grid))


@dataclass(frozen=True)
class ModelMembership:
    """What a model's losses tell of who was a member.

    Attributes
    ----------
    rates : MembershipRates
        Of scores, which are losses with the sign turned.
    mean_in, mean_out : float
        Mean losses of members and others; the first is the attack's threshold.
    allowed, by_noise : float or None
        The largest leakage that the run's epsilon and its noise allow, for records replaced, to an attack by
        the model alone; None where nothing is claimed, or there are fewer than `LEAST_MEMBERS` members.
    """

    rates: MembershipRates
    mean_in: float
    mean_out: float
    allowed: float | None
    by_noise: float | None

    @property
    def taken(self) -> tuple[Rate, Rate]:
        """Shares of members and of others that are taken for members, with 95 % intervals."""
        found = [(int((scores >= -self.mean_in).sum()), len(scores)) for scores in (self.rates.members, self.rates.others)]
        return clopper_pearson(*found[0]), clopper_pearson(*found[1])

    @property
    def leakage(self) -> float:
        return at_threshold(-self.rates.members, -self.rates.others, self.mean_in)

    @property
    def error(self) -> float:
        """Standard error of the leakage, with this model and this threshold given and records as samples."""
        shares = zip(self.taken, (len(self.rates.members), len(self.rates.others)), strict=True)
        return math.sqrt(sum(one.value * (1 - one.value) / n for one, n in shares))

    @property
    def metrics(self) -> dict[str, float]:
        allowed = {ALLOWED: self.allowed, BY_NOISE: self.by_noise}
        told = {name: value for name, value in allowed.items() if value is not None}
        return {LEAKAGE: self.leakage, AREA: self.rates.area} | told

    @property
    def grid(self) -> Grid:
        """Everything, as a table."""
        members, others = self.taken
        n_in, n_out = len(self.rates.members), len(self.rates.others)
        ends = " to ".join(show(round(self.leakage + sign * 1.96 * self.error, 4)) for sign in (-1, 1))
        rows: list[tuple[str, Any]] = [
            ("members: records of the parties", n_in),
            ("others: records of the server's table", n_out),
            ("mean loss of members, the threshold", round(self.mean_in, 4)),
            ("mean loss of others", round(self.mean_out, 4)),
            ("members taken for members", str(members)),
            ("others taken for members", str(others)),
            ("leakage, the difference", f"{show(round(self.leakage, 4))} ({ends})"),
            ("area under the curve", round(self.rates.area, 4)),
        ]
        if FEW_FALSE * n_out >= 10:
            rows.append((f"members accused beside {FEW_FALSE:.0%} of others", str(self.rates.at(FEW_FALSE))))
        if self.allowed is not None:
            rows.append(("leakage that epsilon and delta allow", round(self.allowed, 4)))
        if self.by_noise is not None:
            rows.append(("leakage that the noise allows", round(self.by_noise, 4)))
        note = (
            "Members are records of parties, also those that no sampled round asked for. Intervals: 95 %, records as samples "
            "with this one model given."
        )
        if self.allowed is not None:
            note += (
                " What is allowed holds in expectation over models, for a member replaced by another, of attacks by the model "
                f"alone; the threshold, an exact number of the members, adds in the order of 1/{n_in}."
            )
        return Grid("Who was a member, by the loss of the model", ("what", "value"), tuple(rows), note)


def membership_of(built: Built, state: Any) -> ModelMembership:
    """Compare the losses of a state's model at the parties' records with those at the server's."""
    assert built.listing.losses is not None  # `refuse_membership`
    assert built.test is not None
    losses = [
        np.asarray(built.listing.losses(built.settings, state, built.schema, built.complete(table)), float)
        for table in (members_of(built), built.test)
    ]
    rates = MembershipRates.of(-losses[0], -losses[1])
    allowed = allowed_by(built) if len(losses[0]) >= LEAST_MEMBERS else (None, None)
    return ModelMembership(rates, float(losses[0].mean()), float(losses[1].mean()), *allowed)


def members_of(built: Built) -> Table:
    """The parties' records on which a model may be trained."""
    found = np.concatenate(built.partition.indices)
    if built.study.evaluation.validation:
        found = found[built.table[built.settings["held_out"]][found] != 1]
    return built.whole.take(found)


def allowed_by(built: Built) -> tuple[float | None, float | None]:
    """The largest leakage that the epsilon of a run allows, and that which its noise allows; None where nothing is claimed."""
    from .explain import statement_of

    ledger = built.run.ledger
    said = statement_of(built, ledger)
    if not said.private:
        return None, None
    epsilon, delta = group(said.epsilon, said.delta, 2)
    by_epsilon = advantage(epsilon, min(delta, 1.0))
    return by_epsilon, min(by_epsilon, advantage_of(ledger.charges(said.unit), "replace-one"))
