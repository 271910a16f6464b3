"""The programs that a study runs: one, or each part of `analyses`. Whoever admits programs or reads settings looks at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study import Study

ITSELF = "analyses"
"""The program that runs several."""


def programs_in(study: Study) -> list[tuple[str, Mapping[str, Any]]]:
    """The programs that a study runs, by name, with what it gives them: its own, and where that is several, each of them."""
    given = study.program.model_extra or {}
    found: list[tuple[str, Mapping[str, Any]]] = [(study.program.name, given)]
    if study.program.name == ITSELF and isinstance(parts := given.get("parts"), Mapping):
        told = [part if isinstance(part, Mapping) else {} for part in parts.values()]
        found += [(str(part.get("name")), {key: value for key, value in part.items() if key != "name"}) for part in told]
    return found


def with_labels(study: Study, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a page of several programs, with words for columns from the dictionary where the study has none."""
    held = study.data.held_dictionary
    if study.program.name != ITSELF or held is None:
        return settings
    told = {name: one.label for name, one in held.columns.items() if one.label}
    told |= {name: one.label for name, one in held.derived.items() if one.label}
    for name, one in held.columns.items():
        told |= {f"C({name})[T.{level}]": f"{told[name]}: {level}" for level in one.levels or () if name in told}
    return settings | {"labels": told | settings["labels"]}
