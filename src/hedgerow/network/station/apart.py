"""A study over columns that lie apart, as a station judges it: with whom its people are matched, and what leaves of each.

    alignment    the partners, the column of ids, the fewest common people, the sizes of lists       [guard.vertical]
    seat         numbers of each common person: to the hub in secret order, or sealed to a partner   seats = true
    cross        totals over common people, of columns that single out no few of them                least_common

Settings of a protocol are checked as they come with each question, since the party keeps to those: what a coordinator says
about a study decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hedgerow.errors import ColumnForbidden, ProtectionRequired, StudyInvalid, TooFewRecords

from .vertical_section import VerticalSection

if TYPE_CHECKING:
    from hedgerow.data import Column
    from hedgerow.study.study import Study
    from hedgerow.wire.question import Received

    from .config import GuardSection, StationConfig


FEWER = 3
"""People, at least, for each number of a party's own total in the open."""


def admit_apart(config: StationConfig, study: Study, told: Mapping[str, Sequence[Column]]) -> None:
    """Refuse a study over columns that lie apart that the guard does not allow, before it is rehearsed.

    Parameters
    ----------
    told : mapping from station to its columns
        As the coordinator tells them.

    Raises
    ------
    ProtectionRequired (HR-606)
        The guard does not let the people here be matched, or not with these stations, or not by so weak a protocol.
    ColumnForbidden (HR-603)
        The study would match people by another column than the ids here.
    StudyInvalid (HR-101)
        It gives this station no role, or others than it was told.
    """
    if study.roles is None or study.alignment is None:
        raise StudyInvalid("the study has columns for each station, and no [roles] or no [alignment].", remedy="Add them.")
    roles = study.roles.columns
    if {name: tuple(columns) for name, columns in roles.items()} != {n: tuple(c.name for c in cs) for n, cs in told.items()}:
        raise StudyInvalid("the columns of the stations are not those of [roles].", remedy="Both come from one study.")
    if config.name not in roles:
        raise StudyInvalid(f"[roles] gives {config.name!r} no columns.", remedy="Name each station that is asked.")
    admit_partners(config.guard.vertical, [name for name in roles if name != config.name])
    if study.alignment.on != config.data.ids:
        known = "there are no ids here" if config.data.ids is None else f"the ids here are {config.data.ids!r}"
        raise ColumnForbidden(
            f"the study matches people by {study.alignment.on!r}, and {known}.", remedy="data.ids in station.toml says which."
        )
    admit_least(config.guard.vertical, study.alignment.least)


def admit_partners(rules: VerticalSection, partners: Collection[str]) -> None:
    """Refuse to match people where the guard does not allow it, or not with these stations (HR-606)."""
    if not rules.alignment:
        raise ProtectionRequired(
            f"the study matches the people here with those of {_and(partners)}, and guard.vertical.alignment is not set.",
            remedy="The owner of the data allows it: [guard.vertical] alignment = true.",
        )
    if rules.partners is not None and (others := sorted({*partners} - {*rules.partners})):
        raise ProtectionRequired(
            f"the study matches the people here with those of {_and(others)}, who are not among guard.vertical.partners.",
            remedy="The owner of the data allows it: name them there.",
        )


def admit_least(rules: VerticalSection, least: int) -> None:
    """Refuse a protocol that would go on with fewer common people than the guard wants (HR-604)."""
    if least < rules.least_common:
        raise TooFewRecords(
            f"the study goes on with {least} common people, and guard.vertical.least_common is {rules.least_common}.",
            remedy=f"[alignment] least = {rules.least_common}",
        )


def admit_lists(rules: VerticalSection, here: int, most: int | None, ratio: float | None) -> None:
    """Refuse a protocol that takes longer lists than the guard does (HR-606): who enters all possible ids learns the list here.

    Parameters
    ----------
    here : int
        People here.
    most, ratio : optional
        The longest list that the protocol takes, and how many times as long as another one.
    """
    longest = min(float("inf") if most is None else most, float("inf") if ratio is None else ratio * here)
    limit = min(rules.most_ids, rules.ratio * here)
    if longest > limit:
        raise ProtectionRequired(
            f"the protocol takes lists of {longest:g} ids, and the guard's limit is {limit:g}.",
            remedy=f"[alignment] most = {int(limit)}",
        )


def admit_seat(rules: VerticalSection, question: str) -> None:
    """Refuse numbers for each common person, unless the guard allows them (HR-606)."""
    if not rules.seats:
        raise ProtectionRequired(
            f"{question} sends a number for each common person, and guard.vertical.seats is not set.",
            remedy="The owner of the data allows it: [guard.vertical] seats = true.",
        )


def admit_total(question: str, numbers: int, n_people: int) -> None:
    """Refuse a party's own total in the open that has so many numbers as to be rows of records (HR-606)."""
    if numbers * FEWER > n_people:
        raise ProtectionRequired(
            f"{question} returned {numbers} numbers about {n_people} people, in the open: they could be rows of records.",
            remedy=f"A total in the open has at most one number for {FEWER} people.",
        )


def admit_asked(guard: GuardSection, asked: Received, *, on: str, here: int, others: Collection[str]) -> None:
    """Refuse a question to a party with columns of its own that the guard does not allow.

    Parameters
    ----------
    on : str
        The column of ids here.
    here : int
        People here.
    others : collection of str
        The other stations of the study.

    Raises
    ------
    ProtectionRequired (HR-606), TooFewRecords (HR-604), ColumnForbidden (HR-603)
    """
    from hedgerow.vertical.align import Aligning  # a station that waits holds no protocols
    from hedgerow.vertical.hidden_sums import HiddenJoin

    protocol, question, rules = asked.aggregation, asked.question, guard.vertical
    if protocol is None:
        if question.verb == "gather":
            raise ProtectionRequired(
                f"{question.verb} of {question.name} would leave in the open, and columns that lie apart leave by protocols.",
                remedy="Ask by the handle that an alignment returns.",
            )
        return  # a party's own total is judged by its size, once it is there (`admit_total`)
    if not getattr(protocol, "of_peers", False):
        raise ProtectionRequired(f"{question.name} goes by {protocol.name}, which is no protocol between parties.")
    admit_partners(rules, others)
    if isinstance(protocol, HiddenJoin):
        raise ProtectionRequired(
            f"{question.name} adds up values over a hidden join, which a station does not count against its limits yet.",
            remedy="Align the parties, and ask for means by group; hidden joins are for simulations.",
        )
    if isinstance(protocol, Aligning):
        if protocol.on != on:
            raise ColumnForbidden(f"people are matched by {protocol.on!r}, and the ids here are {on!r}.")
        admit_least(rules, protocol.by.least)
        admit_lists(rules, here, getattr(protocol.by, "most", None), getattr(protocol.by, "ratio", None))
    elif protocol.foreseen(asked.outbox).rows:
        admit_seat(rules, f"{question.name} ({protocol.name})")
        if guard.require.noise != "none":
            raise ProtectionRequired(
                f"{question.name} sends a number for each common person, which no noise covers, and guard.require.noise is "
                f"{guard.require.noise!r}.",
                remedy="Means, tables and linear regression go with noise.",
            )


def _and(names: Collection[str]) -> str:
    return " and ".join(sorted(names))
