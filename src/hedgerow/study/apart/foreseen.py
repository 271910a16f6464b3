"""Who will learn what from a study of parties with different columns, in words: before it runs, and before a station says yes.

alignment     which people are common, how long lists are
program       what is computed, and which seats see rows
cells         the smallest groups about which a number is told
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..catalogue import listing
from ..keys import settings_of
from .protocols import protocol_of
from .sections import HUB, WORLD
from .seen import sentence

if TYPE_CHECKING:
    from ..study import Study

Foreseen = dict[str, tuple[str, ...]]


def will_learn(study: Study) -> Foreseen:
    """Sentences on what each party, the hub and the world will learn from a study; nobody is asked and no data are read.

    Raises
    ------
    StudyInvalid (HR-101)
        The study's program or its keys are none.
    """
    assert study.alignment is not None
    listed = listing(study.program.name)
    settings = settings_of(listed, study.program.model_extra or {})
    parties = parties_of(study)
    found: dict[str, list[str]] = {role: [] for role in (*parties, HUB, WORLD)}
    if listed.takes == "aligned":
        _of_alignment(found, protocol_of(study.alignment).shows, parties)
    for role, said in listed.learns(settings, study.roles).items():
        seat = None if study.roles is None else study.roles.seat
        whose = {"party": parties, "others": tuple(one for one in parties if one != seat)}
        for one in whose.get(role, (role,)):
            found.setdefault(one, []).extend(said)
    noise = study.protection.mechanism
    if noise is not None:
        where = "; the hub sees noisy totals too" if noise.at == "shares" else ""
        found[WORLD].append(f"all sums over records with {noise.law} noise, by the budget{where}")
    return {role: tuple(map(sentence, dict.fromkeys(said))) for role, said in found.items()}


def _of_alignment(found: dict[str, list[str]], shows: Mapping[str, str], parties: tuple[str, ...]) -> None:
    for party in parties:
        found[party].append(shows.get(party, shows["party"]))
    if len(parties) > 2 and "pivot" in shows:
        for party in parties:
            found[party].append(shows["pivot"])
    found[HUB].append(shows["hub"])


def parties_of(study: Study) -> tuple[str, ...]:
    """The parties that a study names."""
    named = tuple(study.roles.columns) if study.roles is not None else ()
    return tuple(study.data.parties) or named


def rules_of(study: Study) -> dict[str, Any]:
    """The rules that hold for everybody, as pairs for a table: ids, least, cells."""
    assert study.alignment is not None
    section = study.alignment
    found = {
        "people are known by": section.on,
        "ids are compared": "after " + section.normal if section.normal != "exact" else "as they are written",
        "protocol": section.by,
        "fewest people in common": section.least,
        "longest list": section.most,
        "lists differ at most": f"{section.ratio:g} times",
        "ids that can be guessed": section.small_domain,
    }
    if study.roles is not None and study.roles.label is not None:
        found["label"] = study.roles.label
    given = (study.program.model_extra or {}).get
    found |= {words: given(key) for key, words in (("least", "fewest people in a group"), ("labels", "labels")) if given(key)}
    return found
