"""What a program says of itself, beside its code.

    @program("Which part of the records lies above a threshold.", case=small)
    def share(federation, *, column: str, threshold: float, start: ShareState | None = None) -> Iterator[ShareState]:

Settings, their types, defaults and meanings are read from the signature and the docstring. What these cannot say is an
argument of the decorator. Nothing is computed when a module is imported: a declaration is read when somebody names it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from hedgerow.errors import ProgramInvalid

Settings = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Iterator[Any]])
NEEDED: Any = ...
"""The default of a key that has to be given."""


@dataclass(frozen=True)
class Key:
    """A key of a study's `[program]` section that is no argument of the program.

    Parameters
    ----------
    kind : type
        What may be given.
    default : object
        `NEEDED` where there is none.
    meaning : str
        For the documentation.
    limits : mapping
        What a number must be: `ge`, `gt`, `le`, `lt`.
    """

    kind: Any
    default: Any
    meaning: str
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A small run of a program, from which its tests are made.

    Parameters
    ----------
    table : hedgerow.data.Table
        A few hundred records at most.
    settings : mapping
        As a study's `[program]` section has them.
    parties : int
        Among whom the records are dealt.
    protection : mapping
        As a study's `[protection]` section has it, where the program needs one.
    tolerance : float
        By how much engines may differ, relative to the largest number of a result above one.
    timed : bool
        Whether states hold times of a clock, so that no two runs are alike.
    roles : mapping
        As a study's `[roles]` section has it, of a program for parties with different columns.
    """

    table: Any
    settings: Settings
    parties: int = 4
    protection: Settings = field(default_factory=dict)
    tolerance: float = 1e-9
    timed: bool = False
    roles: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Declaration:
    """One program as a study can name it.

    Parameters
    ----------
    function : callable
        `(federation, *, settings..., start=None) -> Iterator[State]`.
    name : str
        In `[program]`; by default the function's.
    sentence : str
        What it does, for lists; by default the first line of the docstring.
    fixed : mapping
        Settings that are decided here, and that a study cannot give.
    keys : mapping from name to Key
        Keys beside those of the signature: of what is shown, or from which `bind` makes arguments.
    bind : mapping
        Name of an argument to `(schema, settings) -> value`, where a file cannot hold its value.
    outcome : callable
        `(federation, settings, state) -> hedgerow.report.Outcome`: what the report shows; by default the state's fields.
    with_records : bool
        Whether `outcome` takes the parties' records (`hedgerow.core.Parties`) as a fourth argument, to compare with what only
        a simulation knows; elsewhere it is given None.
    one_record : bool
        Whether each party has one record, without which the program's results would mean something else; a study that deals
        them out otherwise is refused before any party is asked.
    with_test : bool
        Whether the program measures by itself, as one does that fits many models: its argument `test`, which is among `fixed`
        as None, is then the server's table.
    watch : callable, optional
        `(settings, state, schema, test) -> dict` of metrics after a round; `test` is the server's table or None.
    score : callable, optional
        `(settings, state, schema, table) -> float`: how well the state predicts a table; with it come baselines.
    metric : callable
        `(schema) -> (name, more is better)` of that score.
    alone : callable
        `(settings, rounds) -> settings` with which baselines run on one party, given the rounds that the run took.
    ask : callable, optional
        `(federation, settings, state) -> dict`: metrics by a federated sum, for `evaluation.on = "parties"`; among the settings
        is `evaluation.bins`, the resolution of a curve, and `evaluation.groups`, of a calibration if one is wanted.
    losses : callable, optional
        `(settings, state, schema, table) -> array of shape (n,)`: the loss of the state's one model, which is what is released,
        at each record of a table that lacks none of its values. With it comes `evaluation.membership`.
    most : callable, optional
        `(settings, schema) -> mapping` from the name of a local function to how often it is asked at most, of a program whose
        answers decide how often: noise is planned, and statements of rehearsals are made, for so many questions behind noise.
    claim : callable, optional
        `(settings) -> str`: what the program computes as a guarantee without a proof, as a paper has it, and why it is none;
        "" where it does not. A statement then says that it is claimed and not proved.
    synthesizer : callable, optional
        `(settings, arrays, schema, provenance) -> hedgerow.synth.Synthesizer`: what records are drawn from, of the arrays of
        `outcome`, which a run's folder keeps.
    case : callable
        `() -> Case`, from which the contract tests the program.
    columns : {"alike", "apart"}
        Whether parties hold the same columns of different people, or different columns of the same people. Of the second kind
        the program takes a `hedgerow.vertical.Aligned`, or what `takes` says.
    takes : {"aligned", "apart", "anew"}
        Whether it is given the parties after their alignment; before it; or, for trainings that are studies of their own, a
        callable that begins and aligns them anew.
    shows_rows : bool
        Whether a seat sees rows of records, of parties with different columns: neither a budget nor noise goes with it.
    learns : callable
        `(settings, roles) -> mapping` from a party, "hub" or "world" to sentences on what it will learn from the program, for
        parties with different columns; "party" is all of them, "others" all but the holder of the label.
    """

    function: Callable[..., Iterator[Any]]
    name: str
    sentence: str
    fixed: Settings = field(default_factory=dict)
    keys: Mapping[str, Key] = field(default_factory=dict)
    bind: Mapping[str, Callable[[Any, Settings], Any]] = field(default_factory=dict)
    outcome: Callable[..., Any] | None = None
    with_records: bool = False
    one_record: bool = False
    with_test: bool = False
    watch: Callable[[Settings, Any, Any, Any], dict[str, float]] | None = None
    score: Callable[[Settings, Any, Any, Any], float] | None = None
    metric: Callable[[Any], tuple[str, bool]] = lambda schema: ("score", True)
    alone: Callable[[Settings, int], Settings] = lambda settings, rounds: settings
    ask: Callable[[Any, Settings, Any], dict[str, float]] | None = None
    losses: Callable[[Settings, Any, Any, Any], Any] | None = None
    most: Callable[[Settings, Any], Mapping[str, int]] | None = None
    claim: Callable[[Settings], str] | None = None
    synthesizer: Callable[[Settings, Mapping[str, Any], Any, Any], Any] | None = None
    case: Callable[[], Case] | None = None
    columns: Literal["alike", "apart"] = "alike"
    takes: Literal["aligned", "apart", "anew"] = "aligned"
    shows_rows: bool = False
    learns: Callable[[Settings, Any], Mapping[str, tuple[str, ...]]] = lambda settings, roles: {}

    @property
    def path(self) -> str:
        """`module:function`."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def state(self) -> type[Any]:
        """The kind of state that the program yields."""
        kind: type[Any] = get_args(get_type_hints(self.function)["return"])[0]
        return kind

    def program(self, settings: Settings, test: Any = None) -> Callable[..., Iterator[Any]]:
        """Return the program with its settings, ready for `hedgerow.drive`; `test` is the server's table, if any."""

        def run(federation: Any, *, start: Any = None) -> Iterator[Any]:
            own = {key: value for key, value in settings.items() if key not in self.keys}
            own |= {"test": test} if self.with_test else {}
            bound = {name: make(federation.schema, settings) for name, make in self.bind.items()}
            return self.function(federation, **own, **bound, start=start)

        return run


def program(sentence: str = "", *, name: str = "", **more: Any) -> Callable[[Function], Function]:
    """Declare a function as a program; several times where it has several names.

    Parameters
    ----------
    sentence, name, **more
        As `Declaration`.
    """

    def declare(function: Function) -> Function:
        said = sentence or (inspect.getdoc(function) or "").partition("\n")[0]
        made = Declaration(function=function, name=name or function.__name__, sentence=said, **more)
        function.declared = (made, *getattr(function, "declared", ()))  # type: ignore[attr-defined]
        return function

    return declare


def declared(path: str, name: str) -> Declaration:
    """Import `module:function` and return what it says of the program `name`.

    Raises
    ------
    ProgramInvalid (HR-106)
        There is no such function, it declares nothing, or it leaves out what cannot be derived.
    ImportError
        The module, or one that it needs, is not installed.
    """
    module, _, attribute = path.partition(":")
    function = getattr(import_module(module), attribute, None)
    if function is None:
        raise ProgramInvalid(
            f"the program {name!r} is to be {path}, and {module} has no {attribute!r}.",
            remedy="Give the path of the decorated function as package.module:function.",
        )
    found: dict[str, Declaration] = {one.name: one for one in getattr(function, "declared", ())}
    if name not in found:
        said = f"declares {', '.join(map(repr, found))}" if found else "declares no program"
        raise ProgramInvalid(
            f"the program {name!r} is to be {path}, which {said}.",
            remedy=f'Decorate it: @hedgerow.program("One sentence.", name={name!r}, case=...)',
        )
    lacking = list(problems(found[name]))
    if lacking:
        raise ProgramInvalid(f"the program {name!r}, {path}, leaves out what is needed:", remedy="\n".join(lacking))
    return found[name]


def problems(one: Declaration) -> Iterator[str]:
    """Say what a declaration leaves out, and what to write."""
    parameters = inspect.signature(one.function).parameters
    try:
        hints = get_type_hints(one.function)
    except NameError as error:
        yield f"annotations: {error}; import it where the module is run, not only where types are checked."
        return
    meanings = meanings_of(one.function)
    if not one.sentence:
        yield 'a sentence: @program("What it does.") or a docstring.'
    if one.case is None:
        yield "a case: @program(..., case=function), which returns a hedgerow.Case of a few records."
    yields = get_args(hints.get("return"))
    if not yields or not isinstance(yields[0], type) or not is_dataclass(yields[0]):
        yield "what it yields: annotate it -> Iterator[State] with a frozen dataclass."
    elif not hasattr(yields[0], "round") and "round" not in yields[0].__dataclass_fields__:
        yield f"round: a field of {yields[0].__name__}, the number of rounds so far."
    if "start" not in parameters:
        yield "start: a parameter start=None, the state to go on from."
    for given in {**one.fixed, **one.bind}:
        if given not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            yield f"{given}: it is given a value here and is no parameter of the function."
    for parameter in settings_of(one):
        if parameter.name not in hints:
            yield f"{parameter.name}: an annotation with its type."
        if parameter.name not in meanings:
            yield f"{parameter.name}: an entry under Parameters in the docstring, or `as `module.function`` that has it."


def settings_of(one: Declaration) -> list[inspect.Parameter]:
    """Parameters that a study gives by keys of the same names."""
    taken = {"start", *one.fixed, *one.bind}
    parameters = list(inspect.signature(one.function).parameters.values())[1:]
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in taken]


def meanings_of(function: Callable[..., Any]) -> dict[str, str]:
    """What a docstring says of each parameter, and of those that are `as` another function's of Hedgerow or its package."""
    text, own = inspect.getdoc(function) or "", function.__module__.partition(".")[0]
    found: dict[str, str] = {}
    for module, name in re.findall(rf"[Aa]s `((?:hedgerow|{own})[.\w]*)[.](\w+)`", text):
        other = getattr(import_module(module), name, None)
        found |= meanings_of(other) if inspect.isfunction(other) and other is not function else {}
    for names, body in re.findall(r"(?m)^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)+)", text):
        found |= dict.fromkeys(names.split(", "), " ".join(body.split()))
    return found
