"""Questions: what a program asks, as a value that travels; and what is declared beside a local function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import signature
from typing import Any, Literal, TypeVar

from hedgerow.errors import NotNamed, SettingsInvalid, UnboundedSum

from .arrays import Array, Arrays
from .bound import Bounds
from .cohort import Cohort
from .mechanism import Plan
from .party import Local, Party
from .whole import MOST_BITS

Function = TypeVar("Function", bound=Callable[..., Any])
Marked = TypeVar("Marked", bound=Callable[..., Any])
Verb = Literal["each", "sum", "gather"]


def travels(thing: Marked) -> Marked:
    """Mark what a message may name: a function that parties may be asked to run, or a class whose objects are settings.

    Only what is marked is run at a party in another process, whoever asks; see `hedgerow.wire`. In one process nobody looks.
    """
    thing.travels = True  # type: ignore[attr-defined]
    return thing


def minds_missing(function: Marked) -> Marked:
    """Mark a preparation or local function that knows what to do where a value of an optional column is missing."""
    function.minds_missing = True  # type: ignore[attr-defined]
    return function


def elementwise(function: Marked) -> Marked:
    """Mark a preparation whose new values have the bits that they would have if their record were the only one.

    Of a local function with a plan it says the same of parties. So it is for casts, choices, whole numbers, and for sums,
    differences, products and quotients of a few numbers of a record in a fixed order. It is not so for products of matrices,
    nor for logarithms and their like, which libraries compute in vectors, and at the end of an array otherwise.
    """
    function.elementwise = True  # type: ignore[attr-defined]
    return function


def elementwise_where(law: Callable[..., bool]) -> Callable[[Marked], Marked]:
    """Mark a preparation that is `elementwise` for some settings: where `law(**settings)` says so."""

    def mark(function: Marked) -> Marked:
        function.elementwise = law  # type: ignore[attr-defined]
        return function

    return mark


def may_travel(thing: Any) -> bool:
    """Whether a function or class is marked itself; what a class inherits does not count."""
    return getattr(thing, "__dict__", {}).get("travels", False) is True


def local(
    function: Function | None = None,
    *,
    additive: bool = False,
    stackable: bool = False,
    private: str | None = None,
    holds: bool | int = False,
    rowwise: bool = False,
    by_shard: bool | Literal["contents"] = False,
    norms: tuple[float, ...] = (1, 2, math.inf),
) -> Any:
    """Declare what an engine may do with a local function, beyond calling it for one party; parties elsewhere may be asked it.

    Parameters
    ----------
    additive : bool
        Its contribution is a sum over records that uses no randomness and no state: the contribution of pooled records
        is the sum of the parties' contributions, so an engine may pool records where nothing is done party by party.
    stackable : bool
        It accepts parties stacked along a leading axis (columns of shape (n_parties, n_records, ...)), and returns
        arrays with that leading axis.
    private : str, optional
        It is a private mechanism in itself: the setting of this name (`core.mechanism.Plan`) makes its noise and states what
        a call of it costs.
    holds : bool
        Behind noise that is scaled by a bound per record it is called with `bounds` besides, holds each record to them and
        adds in whole steps (`core.whole.whole`). Other sums over records are asked about one record at a time. A number says
        that it needs 2^holds steps to a radius, at most 2^32, so that noise on whole numbers is none for it; without a number
        there are 2^24, and whole numbers will do as well.
    rowwise : bool
        Asked about many parties of one record each, stacked, it gives each the bits that it gives it alone. Then it is asked
        about many records at once. Sums and products of single numbers do so; products of matrices do not.
    by_shard : bool or "contents"
        It is no sum over records, and keeps to a bound per record all the same: it deals records to shards whose number is
        public, each by a chance of its own that depends on no other record, and adds up a row for each shard, made of whole
        numbers and of that shard alone. One record more, or less, then moves the total by as far as two rows lie apart.
        "contents" where it is not chance that deals a record but what the record holds; another one in its place may then
        move two rows.
    norms : tuple
        Of bounds that a function which `holds` keeps to; under others it is asked about one record at a time.
    """
    if not isinstance(holds, bool) and not 0 < holds <= MOST_BITS:
        raise SettingsInvalid(f"holds={holds!r} bits to a radius.", remedy=f"At most {MOST_BITS}, so that sums are exact.")
    if rowwise and not stackable:
        remedy = "Records are asked about as stacked parties: say both."
        raise SettingsInvalid("rowwise=True without stackable=True.", remedy=remedy)

    if by_shard and (additive or holds):
        raise SettingsInvalid("by_shard=True of a sum over records.", remedy="Leave out additive and holds, or by_shard.")

    def declare(function: Function) -> Function:
        takes = signature(function).parameters
        if holds and "bounds" not in takes and all(one.kind != one.VAR_KEYWORD for one in takes.values()):
            raise SettingsInvalid(
                f"{function.__qualname__} says that it holds records to bounds, and takes none.",
                remedy="Give it bounds=None, as hedgerow/stats/quantiles.py does; or leave holds out.",
            )
        function.additive, function.stackable = additive, stackable  # type: ignore[attr-defined]
        function.private, function.holds = private, holds  # type: ignore[attr-defined]
        function.rowwise, function.norms, function.by_shard = rowwise, norms, by_shard  # type: ignore[attr-defined]
        return travels(function)

    return declare if function is None else declare(function)


def name_of(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which a function is named on the wire, or refuse a function without such a name."""
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"
    if "<" in name:
        raise NotNamed(
            f"{name} is not a top-level function, so it has no name that a party could look up or allow.",
            remedy="Define it at the top of a module; pass settings with functools.partial(function, setting=...).",
        )
    return name


def function_of(local: Local) -> Callable[..., Any]:
    """The function of a `functools.partial` with its settings, or the function itself."""
    return local.func if isinstance(local, partial) else local


def settings_of(local: Local) -> dict[str, Any]:
    """The settings of a `functools.partial`; none of a bare function."""
    return local.keywords if isinstance(local, partial) else {}


def plan_of(local: Local) -> Plan | None:
    """The plan of a local function that is a private mechanism in itself."""
    name = getattr(function_of(local), "private", None)
    if name is None:
        return None
    settings = settings_of(local)
    if name not in settings:
        raise UnboundedSum(
            f"{name_of(function_of(local))} is private by its setting {name!r}, which is missing, so its cost is unknown.",
            remedy=f"functools.partial(function, {name}=...)",
        )
    if not isinstance(plan := settings[name], Plan):
        raise UnboundedSum(
            f"{name_of(function_of(local))} is private by {name}={plan!r}, which states no cost.",
            remedy="Give a plan, such as a report of hedgerow.privacy.local.",
        )
    return plan


@dataclass(frozen=True)
class Preparation:
    """A named, record-by-record change of columns at the party: `(columns, **settings) -> new columns`.

    Row i of every new column depends on row i of the old ones alone, so preparing pooled records is the same as
    preparing each party's. Nothing leaves the party. Settings must be hashable. `declares` are declarations
    (`hedgerow.data.Column`) that columns have from then on, for the server.
    """

    function: Callable[..., Mapping[str, Array]]
    settings: tuple[tuple[str, Any], ...] = ()
    declares: tuple[Any, ...] = ()

    @property
    def told(self) -> Preparation:
        """The same as parties are told it."""
        return Preparation(self.function, self.settings) if self.declares else self

    @property
    def elementwise(self) -> bool:
        """Whether a record's new values are the same to the last bit, whatever records it is prepared with."""
        said = getattr(self.function, "elementwise", False)
        return bool(said(**dict(self.settings)) if callable(said) else said)

    def __call__(self, party: Party) -> Mapping[str, Array]:
        return self.function(party.columns, **dict(self.settings))


MAIN = ""
"""The branch of a program's own questions."""

ASIDE = "aside"
"""The branch of measurements that leave a program as it is."""


@dataclass(frozen=True)
class Question:
    """What a program asks of a cohort.

    Attributes
    ----------
    verb : {"each", "sum", "gather"}
    local : callable
        Top-level function, or a `functools.partial` of one, that computes what a party contributes.
    broadcast : array or dict of arrays
        Sent to every party.
    bound : Bound or dict of Bound, optional
        By how much one unit can move the total, as the program declared it.
    init : callable, optional
        `(broadcast, party) -> state` of a party that keeps none yet.
    view : tuple of Preparation
        The columns that parties prepare before they answer.
    cohort : Cohort
    branch, number : str, int
        Its name. Questions of each branch are counted from one; random streams are named by both.
    """

    verb: Verb
    local: Local
    broadcast: Arrays = None
    bound: Bounds | None = None
    init: Local | None = None
    view: tuple[Preparation, ...] = ()
    cohort: Cohort = field(default_factory=Cohort)
    branch: str = MAIN
    number: int = 0

    @property
    def function(self) -> Callable[..., Any]:
        return function_of(self.local)

    @property
    def settings(self) -> dict[str, Any]:
        return settings_of(self.local)

    @cached_property
    def name(self) -> str:
        """`module:name` of the local function."""
        return name_of(self.function)

    @property
    def place(self) -> int | str:
        """The name by which random streams of this question differ from those of others."""
        return self.number if self.branch == MAIN else f"{self.branch} {self.number}"

    @property
    def place_of_cohort(self) -> int | str:
        """The same of its cohort."""
        return self.cohort.number if self.cohort.branch == MAIN else f"{self.cohort.branch} {self.cohort.number}"

    @property
    def counts(self) -> bool:
        """Whether what parties keep may change by it: a measurement aside leaves it as it is."""
        return self.branch == MAIN

    @property
    def additive(self) -> bool:
        return bool(getattr(self.function, "additive", False))

    @property
    def by_shard(self) -> bool:
        """Whether the local function says that a record moves one row of whole numbers, of those that it adds up."""
        return bool(getattr(self.function, "by_shard", False))

    @property
    def poolable(self) -> bool:
        """Whether pooled records give the same total: not where each party draws a sample of its own."""
        return self.additive and self.cohort.sampling.kind != "records"

    @property
    def stackable(self) -> bool:
        """Whether the local function accepts a leading axis, and no setting of it objects."""
        lawful = getattr(self.function, "stackable", False) and self.cohort.sampling.kind != "records"
        return bool(lawful) and all(getattr(value, "stackable", True) for value in self.settings.values())
