"""Noise for a budget: the least noise multiplier with which a whole study stays within its budget.

A study whose mechanism names no noise multiplier is rehearsed with the multipliers 1 and 2. Events that double between the
two are the mechanism's, and scale; others are a program's own. So the multiplier that the budget allows follows without
asking anybody. What the first round asks and what a further one asks may differ; all further rounds are alike. Where answers
decide how many questions there are, the plan is made for the most that the program declares (`furthest`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace

from hedgerow.core.events import Charge, Event, Parts
from hedgerow.core.ledger import Ledger
from hedgerow.errors import StudyInvalid
from hedgerow.privacy.accounting.calibration import least_noise

from .build import Built, build
from .catalogue import listing
from .furthest import taken_furthest
from .keys import divides_budget, settings_of
from .quiet import quiet
from .study import Study

Make = Callable[[Study], Built]
"""Makes a study ready, with the records or where they are elsewhere."""


def with_noise(study: Study, make: Make = build, where: Hashable = None, *, most: int | None = None) -> Study:
    """Return a study whose mechanism, if there is one, has its noise multiplier.

    Parameters
    ----------
    make : callable
        Makes a study ready.
    where : hashable
        Tells studies apart that are made ready with other records: rehearsals are remembered.
    most : int, optional
        Rounds after which a rehearsal that has not ended is stopped, where the study is a stranger's.

    Raises
    ------
    StudyInvalid (HR-101)
        There is no budget that would decide it.
    """
    mechanism = study.protection.mechanism
    if study.comparison is not None or mechanism is None or mechanism.noise_multiplier is not None:
        return study
    if study.budget is None:
        raise StudyInvalid(
            "protection.mechanism has no noise_multiplier, and there is no budget that would decide it.",
            remedy="Give protection.mechanism.noise_multiplier, or a [budget] with epsilon and delta.",
        )
    budget = study.budget.budget()
    rounds = rounds_alike(study)
    if rounds is None:
        phases = [(1, _pairs(study, most, make, where))]
    else:
        both, n_first = _pairs(study, 2, make, where), _rehearsal(study, 1.0, 2, make, where)[1]
        phases = [(1, both[:n_first]), (rounds - 1, both[n_first:])]

    def charges(noise_multiplier: float) -> Counter[Charge]:
        found = Counter[Charge]()
        for times, pairs in phases:
            for one, two in pairs:
                found[_between(one, two, noise_multiplier)] += times
        return found

    price = budget.spent if budget.filter else None
    least = least_noise(charges, budget.epsilon, budget.delta, accountant=budget.accountant, price=price)
    if mechanism.law == "discrete gaussian":  # its events fall short of its multiplier, by less the larger that is
        while budget.spent(_charges(study, least, most, make, where)) > budget.epsilon:
            least *= 1.002
    return _with(study, least)


def rounds_alike(study: Study) -> int | None:
    """Rounds of a program that asks alike in each; None where it has to be rehearsed to its end."""
    mechanism = study.protection.mechanism
    if mechanism is not None and mechanism.law == "tree":  # a further tree is charged in some later round
        return None
    settings = settings_of(listing(study.program.name), study.program.model_extra or {})
    given, alike = settings.get("rounds"), settings.get("last_rate") is None and not settings.get("rates")
    alike = alike and not divides_budget(settings)  # which asks for different things
    return given if isinstance(given, int) and given > 1 and alike and study.evaluation.on != "parties" else None


def _pairs(study: Study, rounds: int | None, make: Make, where: Hashable) -> list[tuple[Charge, Charge]]:
    """What so many rounds are charged, with multipliers 1 and 2."""
    found = [_charges(study, noise_multiplier, rounds, make, where) for noise_multiplier in (1.0, 2.0)]
    if len(found[0]) != len(found[1]):
        raise StudyInvalid(
            f"program {study.program.name!r} asks {len(found[0])} questions of made-up records with noise of multiplier 1 and "
            f"{len(found[1])} with 2: its answers decide how many, so that no budget decides the noise.",
            remedy="Give protection.mechanism.noise_multiplier; or declare `most` of the program: how often it asks at most.",
        )
    return list(zip(*found, strict=True))


def _charges(study: Study, noise_multiplier: float, rounds: int | None, make: Make, where: Hashable) -> list[Charge]:
    """What so many rounds are charged."""
    return _rehearsal(study, noise_multiplier, rounds, make, where)[0]


def _rehearsal(
    study: Study, noise_multiplier: float, rounds: int | None, make: Make, where: Hashable
) -> tuple[list[Charge], int]:
    """What so many rounds are charged, and how many of these charges come with the first of them."""
    from .rehearse import rehearse_built

    free = _with(study, noise_multiplier).model_copy(update={"budget": None})
    key = (free.digest, where, rounds)
    if len(_rehearsed) > MOST_KEPT:
        _rehearsed.clear()
    if key not in _rehearsed:
        with quiet():
            built = make(free)
            found = rehearse_built(built, rounds=rounds)
            taken_furthest(built, found.ledger)  # of one that was stopped, too
        unit, first = next((entry.unit for entry in found.entries if entry.unit), "party"), Ledger()
        first.entries = found.entries[: found.after[0]] if found.after else found.entries
        _rehearsed[key] = found.ledger.charges(unit), len(first.charges(unit))
    return _rehearsed[key]


MOST_KEPT = 500
"""Rehearsals that are remembered."""

_rehearsed: dict[tuple[str, Hashable, int | None], tuple[list[Charge], int]] = {}
"""Charges of rehearsals: runs of a comparison that differ in their budgets share them."""


def _between(one: Charge, two: Charge, noise_multiplier: float) -> Charge:
    """The charge at a multiplier, from those at 1 and 2."""
    return one[0], tuple(_scaled(a, b, noise_multiplier) for a, b in zip(one[1], two[1], strict=True))


def _scaled(one: Event | Parts, two: Event | Parts, z: float) -> Event | Parts:
    if isinstance(one, Parts) and isinstance(two, Parts):
        pairs = (zip(*events, strict=True) for events in zip(one.events, two.events, strict=True))
        return Parts(tuple(tuple(_scaled_event(a, b, z) for a, b in pair) for pair in pairs))
    assert isinstance(one, Event)
    assert isinstance(two, Event)
    return _scaled_event(one, two, z)


def _scaled_event(one: Event, two: Event, z: float) -> Event:
    grown = one.noise_multiplier + (two.noise_multiplier - one.noise_multiplier) * (z - 1)
    return replace(one, noise_multiplier=grown, epsilon=one.epsilon / (z if two.epsilon < one.epsilon else 1.0))


def _with(study: Study, noise_multiplier: float) -> Study:
    mechanism = study.protection.mechanism
    assert mechanism is not None
    filled = mechanism.model_copy(update={"noise_multiplier": noise_multiplier})
    return study.model_copy(update={"protection": study.protection.model_copy(update={"mechanism": filled})})
