"""How a training asks for what a rule combines: rows of parties, or sums of groups of them.

    mean        total <- sum(cohort);  mean = total / weight                         the same bits as without a rule
    groups      for each of G groups: total_g <- sum(group);  mean_g                 then the rule over the G means
    any other   r_i <- gather(cohort)                                                then the rule over the rows

Where a channel clips, parties clip; and since a party that lies may not, the server counts a row beyond the bound as zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.core.bound import Bound, Bounds, each_bound
from hedgerow.core.federation import Federation
from hedgerow.core.party import Local, Party
from hedgerow.errors import CohortTooSmall, SettingsInvalid

from .groups import Groups
from .named import check_expect, number_of, rule_from
from .plain import PlainMean
from .rule import Array, Beside, Rule, in_float

SLACK = 1e-3
"""By how much a row may be longer than its bound: clipped rows are rounded."""


@dataclass(frozen=True)
class RuleInUse:
    """A rule, how many parties it is to hold against, and the server's root records where it needs them.

    Attributes
    ----------
    rule : Rule
    expect : float, optional
        Share, below one, or number of the parties asked in a round that may lie.
    root : Party, optional
        The server's root records, prepared as parties prepare theirs.
    """

    rule: Rule = field(default_factory=PlainMean)
    expect: float | None = None
    root: Party | None = None

    @property
    def of_rows(self) -> bool:
        """Whether anything but the mean of all is taken."""
        return not isinstance(self.rule, PlainMean)

    @classmethod
    def checked(cls, rule: Any, expect: float | None, federation: Federation, cohort: float, *, sampled: bool) -> RuleInUse:
        """Check a rule against a federation before any party is asked.

        Parameters
        ----------
        cohort : float
            Expected number of parties in a round.
        sampled : bool
            Whether a round asks fewer than all.

        Raises
        ------
        SettingsInvalid (HR-511)
        """
        made = rule_from(rule)
        check_expect(expect, made)
        n = int(cohort)
        f = number_of(expect, n)
        if isinstance(made, Groups):
            if sampled:
                raise SettingsInvalid(
                    "groups are a partition of all parties, and rate, size or every asks fewer of them.",
                    remedy="Leave out rate, size and every, or take a rule over rows.",
                )
            made.refuse_groups(n, f, federation.protection.least)
        elif expect is not None or not isinstance(made, PlainMean):  # without a rule the waist refuses what cannot be asked
            made.refuse(n, f)
        return cls(made, expect)

    def for_cohort(self, n: int) -> Rule:
        """The rule for a cohort of n parties that were asked."""
        f = number_of(self.expect, n)
        return self.rule if f is None else self.rule.expecting(f)

    def combine(self, answers: Mapping[str, Mapping[str, Array]], asked: int, beside: Beside) -> tuple[Arrays, Arrays]:
        """Combine answers by name; return the combined contribution by key, and what the rule keeps.

        Raises
        ------
        CohortTooSmall (HR-240)
            So few parties answered that the rule cannot hold against as many liars as were expected of those asked.
        """
        rule, n, what = self.for_cohort(asked), len(answers), f"of {asked} parties"
        f = rule.expects if rule.expects is not None else number_of(self.expect, asked) or 0
        if isinstance(rule, Groups):
            what, rule = f"of {rule.groups} groups", rule.of
        if not n or f > rule.largest(n):
            raise CohortTooSmall(
                f"{n} {what} answered, f = {f} parties may lie, and the rule {rule.name} needs {rule.condition}.",
                remedy="Ask more parties in a round, resume when more of them answer, or expect fewer that lie.",
                asked=True,
            )
        rows = in_float(joined(list(answers.values())))
        found = rule(rows, beside)
        return parted(found, next(iter(answers.values()))), rule.kept(rows, beside, found)


Arrays = dict[str, Array]


def joined(answers: Sequence[Mapping[str, Array]]) -> Array:
    """Rows of shape (n, d): the keys of each answer one after the other."""
    return np.stack([np.concatenate([np.ravel(answer[key]) for key in answer]) for answer in answers])


def parted(row: Array, like: Mapping[str, Array]) -> Arrays:
    """A row cut into keys again, with the shapes of an answer."""
    found, start = Arrays(), 0
    for key, value in like.items():
        size = int(np.size(value))
        found[key] = row[start : start + size].reshape(np.shape(value))
        start += size
    return found


def held(answers: Mapping[str, Mapping[str, Array]], federation: Federation) -> dict[str, Mapping[str, Array]]:
    """Answers of parties that keep to the channel's clip; the others' become zeros.

    Behind noise that parties add, rows are lawfully longer than the bound and stay as they are. The engines of this package
    hold rows that may be lies where they arrive. An engine of another package need not, and a rule does not depend on it.
    """
    clip = federation.protection.clip
    if clip is None or federation.protection.noisy or federation.protection.compressed:
        return dict(answers)
    return {name: answer if _within(answer, clip) else _zeros(answer) for name, answer in answers.items()}


def _within(answer: Mapping[str, Array], clip: Bounds) -> bool:
    pairs = (
        [(joined([answer]), clip)]
        if isinstance(clip, Bound)
        else [(np.ravel(answer[key])[None], bound) for key, bound in clip.items() if key in answer]
    )
    with np.errstate(invalid="ignore", over="ignore"):
        return all(bool(bound.size(row).max() <= bound.radius * (1 + SLACK)) for row, bound in pairs)


def _zeros(answer: Mapping[str, Array]) -> Mapping[str, Array]:
    return {key: np.zeros_like(value) for key, value in answer.items()}


def lawful_clip(clip: Bounds | None) -> None:
    """Refuse a clip with a bound of its own for a weight, which rules do not send."""
    if isinstance(clip, Mapping) and "n" in clip:
        raise SettingsInvalid(
            f"a rule counts parties alike and sends no weight, and the clip bounds one: {len(each_bound(clip))} keys.",
            remedy="Clip the contribution as a whole: protect(clip=l2(1.0)).",
        )


def row_of_root(local: Local, broadcast: Any, root: Party, rng: np.random.Generator) -> Array:
    """The server's own row: what its root records answer to the question that parties are asked."""
    found: Mapping[str, Array] = local(broadcast, Party("server", root.columns, root.w), rng)
    row: Array = joined([found])[0]
    return row
