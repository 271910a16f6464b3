"""The label of a study, as programs are given it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.errors import StudyInvalid

Settings = Mapping[str, Any]


def label_of(built: Any, settings: Settings) -> str:
    """The label that a study's roles name.

    Raises
    ------
    StudyInvalid (HR-101)
        They name none.
    """
    roles = built.study.roles
    if roles is None or roles.label is None:
        raise StudyInvalid(
            f"the program {built.study.program.name!r} needs a label.", remedy="Say whose: [roles] label = 'party.column'."
        )
    return str(roles.label)
