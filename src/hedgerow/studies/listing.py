"""The catalogue's entries: how a study's `[program]` section becomes a program, and its last state a result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from hedgerow.core.declaration import Declaration, Key, meanings_of
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.errors import MissingExtra, StudyInvalid, suggestion
from hedgerow.report import Outcome, plain_outcome

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Listing:
    """One program of the catalogue.

    Parameters
    ----------
    path : str
        `module:function` of the program, `(federation, *, settings..., start=None) -> Iterator[State]`. Its keyword
        arguments are the keys of `[program]`, its annotations their types, its return annotation the kind of state.
    sentence : str
        What it does, for lists.
    fixed : mapping
        Settings that this listing decides, and that a study cannot.
    instead : mapping
        Keys by which a study says what the program's arguments named in `bind` are: name to (type, default).
    bind : mapping
        Name of an argument to `(schema, settings) -> value`, made from the keys of `instead`.
    outcome : callable
        `(federation, settings, state) -> Outcome`.
    watch : callable, optional
        `(settings, state, schema, test) -> dict` of metrics after a round; `test` is the server's table or None.
    score : callable, optional
        `(settings, state, schema, table) -> float`: how well the state predicts a table; with it come baselines.
    metric : callable
        `(schema) -> (name, more is better)` of that score.
    alone : callable, optional
        `(settings, rounds) -> settings` with which baselines run on one party, given the rounds that the run took.
    ask : callable, optional
        `(federation, settings, state) -> dict`: metrics by a federated sum, for `evaluation.on = "parties"`.
    """

    path: str
    sentence: str
    outcome: Callable[..., Outcome] = plain_outcome
    with_records: bool = False
    fixed: Settings = field(default_factory=dict)
    instead: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    bind: Mapping[str, Callable[[Schema, Settings], Any]] = field(default_factory=dict)
    watch: Callable[[Settings, Any, Schema, Table | None], dict[str, float]] | None = None
    score: Callable[[Settings, Any, Schema, Table], float] | None = None
    metric: Callable[[Schema], tuple[str, bool]] = lambda schema: ("score", True)
    alone: Callable[[Settings, int], Settings] = lambda settings, rounds: settings
    ask: Callable[[Federation, Settings, Any], dict[str, float]] | None = None

    @classmethod
    def of(cls, one: Declaration) -> Listing:
        """The listing of a program that declares itself."""
        return cls(
            path=one.path,
            sentence=one.sentence,
            outcome=one.outcome or plain_outcome,
            with_records=one.with_records,
            fixed=one.fixed,
            instead={name: _field(key) for name, key in one.keys.items()},
            bind=one.bind,
            watch=one.watch,
            score=one.score,
            metric=one.metric,
            alone=one.alone,
            ask=one.ask,
        )

    @property
    def function(self) -> Callable[..., Iterator[Any]]:
        module, name = self.path.split(":")
        try:
            found: Callable[..., Iterator[Any]] = getattr(import_module(module), name)
        except ImportError as error:
            raise MissingExtra(
                f"{self.path} needs a package that is not installed: {error}.", remedy="pip install 'hedgerow[all]'"
            ) from error
        return found

    @property
    def state(self) -> type[Any]:
        """The kind of state that the program yields."""
        kind: type[Any] = get_args(get_type_hints(self.function)["return"])[0]
        return kind

    def keys(self) -> type[BaseModel]:
        """The `[program]` section as a model: one key for each keyword argument."""
        hints, meanings = get_type_hints(self.function), meanings_of(self.function)
        keys: dict[str, Any] = dict(self.instead)
        for parameter in list(inspect.signature(self.function).parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                keys |= {name: (hint, hint.__metadata__[0]) for name, hint in self.shared().items() if name not in self.fixed}
            elif parameter.name not in {"start", *self.fixed, *self.bind}:
                default = ... if parameter.default is parameter.empty else parameter.default
                keys[parameter.name] = (hints[parameter.name], Field(default, description=meanings.get(parameter.name)))
        return create_model("program", __config__=ConfigDict(extra="forbid"), **keys)

    def shared(self) -> dict[str, Any]:
        """Settings that the program shares with others of its room, with their annotated types."""
        hints = get_type_hints(self.function)
        found = [p for p in inspect.signature(self.function).parameters.values() if p.kind is p.VAR_KEYWORD]
        return {} if not found else get_type_hints(get_args(hints[found[0].name])[0], include_extras=True)

    def settings(self, given: Settings) -> dict[str, Any]:
        """Check the keys of a `[program]` section and fill in defaults."""
        model = self.keys()
        try:
            return dict(model.model_validate(dict(given))) | dict(self.fixed)
        except ValidationError as error:
            lines: dict[str, str] = {}
            for problem in error.errors():
                key = str(problem["loc"][0]) if problem["loc"] else ""
                unknown = problem["type"] == "extra_forbidden"
                said = f"unknown key {key!r}. {suggestion(key, model.model_fields)}" if unknown else f"{key}: {problem['msg']}"
                lines.setdefault(key, said)  # a key of several types has a problem with each
            remedy = "\n".join(lines.values())
            raise StudyInvalid(f"the section [program] has {len(lines)} problem(s):", remedy=remedy) from error

    def program(self, settings: Settings) -> Callable[..., Iterator[Any]]:
        """Return the program with its settings, ready for `drive`."""

        def run(federation: Federation, *, start: Any = None) -> Iterator[Any]:
            own = {key: value for key, value in settings.items() if key not in self.instead}
            bound = {name: make(federation.schema, settings) for name, make in self.bind.items()}
            return self.function(federation, **own, **bound, start=start)

        return run


def _field(key: Key) -> tuple[Any, Any]:
    return key.kind, Field(key.default, description=key.meaning, **key.limits)
