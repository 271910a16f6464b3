"""From a program's declaration to the keys of a study's `[program]` section, and from what a file gives to settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from hedgerow.core.declaration import Declaration, Key, meanings_of
from hedgerow.errors import StudyInvalid, suggestion

Settings = Mapping[str, Any]


@lru_cache(maxsize=256)
def keys_of(one: Declaration) -> type[BaseModel]:
    """The `[program]` section as a model: one key for each keyword argument. A program's is made once."""
    hints, meanings = get_type_hints(one.function), meanings_of(one.function)
    keys: dict[str, Any] = {name: (key.kind, _field(key)) for name, key in one.keys.items()}
    for parameter in list(inspect.signature(one.function).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            keys |= {name: (hint, hint.__metadata__[0]) for name, hint in shared_by(one).items() if name not in one.fixed}
        elif parameter.name not in {"start", *one.fixed, *one.bind}:
            default = ... if parameter.default is parameter.empty else parameter.default
            keys[parameter.name] = (hints[parameter.name], Field(default, description=meanings.get(parameter.name)))
    return create_model("program", __config__=ConfigDict(extra="forbid"), **keys)


def _field(key: Key) -> Any:
    return Field(key.default, description=key.meaning, **key.limits)


def shared_by(one: Declaration) -> dict[str, Any]:
    """Settings that a program shares with others of its room, with their annotated types."""
    hints = get_type_hints(one.function)
    found = [p for p in inspect.signature(one.function).parameters.values() if p.kind is p.VAR_KEYWORD]
    return {} if not found else get_type_hints(get_args(hints[found[0].name])[0], include_extras=True)


def settings_of(one: Declaration, given: Settings) -> dict[str, Any]:
    """Check the keys of a `[program]` section and fill in defaults.

    Raises
    ------
    StudyInvalid (HR-101)
        All problems at once; an unknown key with the nearest known one.
    """
    model = keys_of(one)
    try:
        return dict(model.model_validate(dict(given))) | dict(one.fixed)
    except ValidationError as error:
        lines: dict[str, str] = {}
        for problem in error.errors():
            key = str(problem["loc"][0]) if problem["loc"] else ""
            unknown = problem["type"] == "extra_forbidden"
            said = f"unknown key {key!r}. {suggestion(key, model.model_fields)}" if unknown else f"{key}: {problem['msg']}"
            lines.setdefault(key, said)  # a key of several types has a problem with each
        remedy = "\n".join(lines.values())
        raise StudyInvalid(f"the section [program] has {len(lines)} problem(s):", remedy=remedy) from error


def keeps_noise(settings: Settings) -> bool:
    """Whether noise is part of a program's method, so that it runs with it also where nothing else protects records."""
    return settings.get("epsilon") is not None and not divides_budget(settings)


def divides_budget(settings: Settings) -> bool:
    """Whether a program can divide an epsilon of its own over its questions (`hedgerow.privacy.shares`)."""
    return {"epsilon", "delta", "noise_at"} <= settings.keys()
