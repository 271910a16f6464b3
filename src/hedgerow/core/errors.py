"""Everything that Hedgerow refuses, with its code, reason and remedy.

    HedgerowError
    ├── StudyError      HR-1xx   studies, run folders, installation
    ├── WaistError      HR-2xx   queries, channels, budgets, ledgers
    ├── StatisticsError HR-3xx   formulas and estimation
    ├── DataError       HR-4xx   tables, schemas, partitions
    └── LearningError   HR-5xx   models and training settings

A message says the value, the reason and the remedy, and whether any party was asked. Across the boundary between a party
and the server only the code travels (`PartyDeclined.codes`); the sentence stays in that party's log.
Each code has a page in `docs/errors/`; a test compares the two lists.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class HedgerowError(Exception):
    """Base of every error that Hedgerow raises on purpose.

    Parameters
    ----------
    reason : str
        The value that was met and why it cannot be used.
    remedy : str
        What to do instead; may span several lines.
    asked : bool
        Whether parties had been asked when the error was raised.
    """

    code: ClassVar[str] = "HR-000"
    asked_by_default: ClassVar[bool] = False

    def __init__(self, reason: str, *, remedy: str = "", asked: bool | None = None) -> None:
        self.reason = reason
        self.remedy = remedy
        self.asked = self.asked_by_default if asked is None else asked
        super().__init__(reason)

    def __str__(self) -> str:
        lines = [f"{type(self).__name__} [{self.code}]: {self.reason}"]
        lines += [f"  {line}" for line in self.remedy.splitlines()]
        asked = "Parties had been asked." if self.asked else "No party was asked."
        return "\n".join([*lines, f"{asked} More: docs/errors/{self.code}.md"])


class HedgerowWarning(UserWarning):
    """Something lawful that a careful reader would want to know."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` or the list of known words, for a misspelt name."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "Known: " + ", ".join(names) + "." if names else "None is known."


# ---- 1xx: studies, run folders, installation ------------------------------------------------------------------------
class StudyError(HedgerowError):
    """A study, its files or the installation."""


class StudyInvalid(StudyError):
    """A study has an unknown key, a wrong type or an impossible combination."""

    code = "HR-101"


class UnknownStudy(StudyError):
    """No study of this name or path exists."""

    code = "HR-102"


class CheckpointMismatch(StudyError):
    """A checkpoint belongs to another study, program or version."""

    code = "HR-103"


class CannotWrite(StudyError):
    """A file could not be written: full disk, missing permission, existing run."""

    code = "HR-104"
    asked_by_default = True


class MissingExtra(StudyError):
    """An optional package is needed and not installed."""

    code = "HR-105"


# ---- 2xx: the waist -------------------------------------------------------------------------------------------------
class WaistError(HedgerowError):
    """A query, a channel, a budget or a ledger."""


class UnboundedSum(WaistError):
    """Noise or fixed-point encoding was asked for a sum that declares no bound."""

    code = "HR-210"


class UnlawfulChannel(WaistError):
    """Clip, mechanism and aggregation do not fit together."""

    code = "HR-211"


class SlotFilled(WaistError):
    """A program tried to replace protection that its caller had chosen."""

    code = "HR-212"


class BudgetExhausted(WaistError):
    """The next query would exceed the budget; it was refused before any party was asked."""

    code = "HR-213"


class BudgetInvalid(WaistError):
    """A budget, noise multiplier, rate or radius is out of its range."""

    code = "HR-214"


class MixedUnits(WaistError):
    """A record-level and a party-level guarantee were mixed."""

    code = "HR-215"


class NobodyAnswered(WaistError):
    """No party of the cohort answered a question that needs an answer."""

    code = "HR-220"
    asked_by_default = True


class PartyDeclined(WaistError):
    """A party refused or failed; only the code of its reason is known here."""

    code = "HR-221"
    asked_by_default = True

    def __init__(self, reason: str, *, codes: dict[str, str] | None = None, remedy: str = "") -> None:
        self.codes = codes or {}
        super().__init__(reason, remedy=remedy)


class ContributionInvalid(WaistError):
    """A contribution has the wrong keys, shape, type, or a value that is not finite."""

    code = "HR-222"
    asked_by_default = True


class NotNamed(WaistError):
    """A local function or preparation cannot be named by its import path."""

    code = "HR-224"


class ViewNotRecorded(WaistError):
    """The view of an observer was asked of a federation that does not record it."""

    code = "HR-230"


class LedgerDamaged(WaistError):
    """A ledger file has a gap, a double entry, or a broken chain."""

    code = "HR-231"


# ---- 3xx: statistics ------------------------------------------------------------------------------------------------
class StatisticsError(HedgerowError):
    """Formulas and estimation."""


class FormulaInvalid(StatisticsError):
    """A formula cannot be read, or asks what cannot be computed record by record."""

    code = "HR-310"


class NotBinary(StatisticsError):
    """A logistic regression was asked for a target with other than two values."""

    code = "HR-311"


class NotIdentified(StatisticsError):
    """The information is singular: a column is constant or a combination of others."""

    code = "HR-320"
    asked_by_default = True


class Separated(StatisticsError):
    """Columns separate the classes, so that maximum-likelihood estimates are infinite."""

    code = "HR-321"
    asked_by_default = True


class NotConverged(StatisticsError):
    """An iteration ended before its tolerance was met."""

    code = "HR-322"
    asked_by_default = True


# ---- 4xx: data ------------------------------------------------------------------------------------------------------
class DataError(HedgerowError):
    """Tables, schemas and partitions."""


class UnknownDataset(DataError):
    """No data set of this name is catalogued."""

    code = "HR-401"


class MissingData(DataError):
    """A file or data set is not on this machine."""

    code = "HR-402"


class MissingColumn(DataError):
    """A named column is not in the table."""

    code = "HR-403"


class NotFinite(DataError):
    """A column holds missing or infinite values."""

    code = "HR-404"


class OutOfRange(DataError):
    """A value lies outside its declared range or levels."""

    code = "HR-405"


class EmptyParty(DataError):
    """A partition would leave a party without records."""

    code = "HR-406"


class ColumnsDiffer(DataError):
    """Parties hold different columns."""

    code = "HR-407"


class PartitionInvalid(DataError):
    """A partition cannot be made with these settings."""

    code = "HR-408"


class SchemaInvalid(DataError):
    """A schema contradicts itself or its table."""

    code = "HR-409"


class ChecksumMismatch(DataError):
    """A file is not the one that was catalogued."""

    code = "HR-411"


# ---- 5xx: learning --------------------------------------------------------------------------------------------------
class LearningError(HedgerowError):
    """Models and training settings."""


class ModelInvalid(LearningError):
    """A module cannot be trained federatedly or does not fit the data."""

    code = "HR-510"


class SettingsInvalid(LearningError):
    """A setting of a program is out of its range."""

    code = "HR-511"


def catalogue() -> dict[str, type[HedgerowError]]:
    """Return every code and its class, in order."""
    found: dict[str, type[HedgerowError]] = {}
    todo = list(HedgerowError.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if "code" in vars(kind):
            found[kind.code] = kind
    return dict(sorted(found.items()))
