"""Submitting a study: everything that can be found wrong without asking a station is found now."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hedgerow.core.toml import read_toml, to_toml
from hedgerow.errors import StationUnknown, StudyInvalid, suggestion
from hedgerow.study import Study, parse
from hedgerow.study.catalogue import listing
from hedgerow.study.keys import settings_of

from .adding_up import too_few
from .states import Kept
from .store import Store


def submit(
    store: Store,
    study: Study,
    *,
    stations: Sequence[str] = (),
    roster: Collection[str] | None = None,
    aggregators: Sequence[str] | None = None,
) -> str:
    """Keep a study for the coordinator of this store, whether it runs or not; return the study's id.

    Parameters
    ----------
    stations : sequence of str
        Whom to ask; all on the roster by default.
    roster : collection of str, optional
        Names of stations that are known.
    aggregators : sequence of str, optional
        Who adds up shares for this coordinator.

    Raises
    ------
    StudyInvalid (HR-101)
        The study needs what only a simulation has, or more aggregators than there are, or its program cannot be set up.
    StationUnknown (HR-613)
    """
    refuse_simulation(study)
    settings_of(listing(study.program.name), study.program.model_extra or {})
    study.protection.slots()
    if aggregators is not None and (problem := too_few(study, aggregators)):
        raise StudyInvalid(f"{problem}.", remedy="Name them in aggregators = [...] of coordinator.toml, or take by = 'secagg'.")
    for name in stations:
        if roster is not None and name not in roster:
            raise StationUnknown(f"no station {name!r} is on the roster.", remedy=suggestion(name, roster))
    if len(set(stations)) < len(stations):
        raise StudyInvalid(f"a station is named twice in {', '.join(stations)}.", remedy="Name each once.")
    return store.submit(study.name, to_toml(study.model_dump(mode="json")) + "\n", stations)


def refuse_simulation(study: Study) -> None:
    """Refuse what only a simulation can do."""
    evaluation, problems = study.evaluation, []
    if study.comparison is not None:
        problems.append("it is a comparison: submit its runs one by one")
    if evaluation.holdout or evaluation.validation:
        key = "holdout" if evaluation.holdout else "validation"
        problems.append(f"evaluation.{key} takes records out of a table, and records stay at stations: set it to 0")
    if study.engine.dropout_rate or study.engine.dropped or study.engine.deadline is not None:
        problems.append("[engine] makes up dropouts or delays, and stations have their own: leave those keys out")
    if problems:
        raise StudyInvalid(f"the study {study.name!r} cannot be asked of stations:", remedy="\n".join(problems))


def study_of(kept: Kept) -> Study:
    """The study that was submitted."""
    return parse(read_toml(kept.text))
