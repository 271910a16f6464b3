"""Everything that Hedgerow refuses, with its code, reason and remedy.

    HedgerowError
    ├── StudyError      HR-1xx   studies, run folders, installation
    ├── WaistError      HR-2xx   queries, channels, budgets, ledgers
    ├── StatisticsError HR-3xx   formulas and estimation
    ├── DataError       HR-4xx   tables, schemas, partitions
    ├── LearningError   HR-5xx   models and training settings
    └── StationError    HR-6xx   stations, their guards, coordinators and rails

A message says the value, the reason and the remedy, and whether any party was asked. From a party to the server only the code
travels (`PartyDeclined.codes`); the sentence stays in that party's log. `hedgerow explain CODE` prints a code's page.
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
    says : bool
        Whether the message tells it: that of a figure or a table in a file has nothing to do with parties.
    """

    code: ClassVar[str] = ""
    _asked: ClassVar[bool] = False
    _unasked: ClassVar[str] = "No party was asked."

    def __init_subclass__(cls, code: str = "", asked: bool = False) -> None:
        cls.code, cls._asked = code, asked

    def __init__(self, reason: str, *, remedy: str = "", asked: bool | None = None, says: bool = True) -> None:
        self.reason, self.remedy, self.says = reason, remedy, says
        self.asked = self._asked if asked is None else asked
        super().__init__(reason)

    def __str__(self) -> str:
        lines = [f"{type(self).__name__} [{self.code}]: {self.reason}"]
        lines += [f"  {line}" for line in self.remedy.splitlines()]
        asked = "" if not self.says else "Parties had been asked. " if self.asked else f"{self._unasked} "
        return "\n".join([*lines, f"{asked}More: hedgerow explain {self.code}"])


class HedgerowWarning(UserWarning):
    """Something lawful that a careful reader would want to know."""


ELSEWHERE = {
    "bce": ("log_loss",),
    "ce": ("cross_entropy",),
    "clients": ("parties",),
    "l1": ("absolute",),
    "local_epochs": ("epochs",),
    "lr": ("learning_rate",),
    "mae": ("absolute", "mean_absolute_error"),
    "mse": ("squared", "mean_squared_error"),
    "num_clients": ("parties",),
    "num_rounds": ("rounds",),
    "optimiser": ("solver",),
    "optimizer": ("solver",),
}
"""Words of other libraries, and what is meant by them here."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` or the list of known words, for a misspelt name or one that other libraries use."""
    names = sorted(set(known))
    meant = [name for name in names if name in ELSEWHERE.get(word.lower(), ()) or name.lower() == word.lower()]
    close = meant or difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "Known: " + ", ".join(names) + "." if names else "None is known."


# ---- 1xx: studies, run folders, installation ------------------------------------------------------------------------
class StudyError(HedgerowError):
    """A study, its files or the installation."""


class StudyInvalid(StudyError, code="HR-101"):
    """A study has an unknown key, a wrong type or an impossible combination."""


class UnknownStudy(StudyError, code="HR-102"):
    """No study of this name or path exists."""


class CheckpointMismatch(StudyError, code="HR-103"):
    """A checkpoint belongs to another study, program or version."""


class CannotWrite(StudyError, code="HR-104", asked=True):
    """A file could not be written: full disk, missing permission, existing run."""


class MissingExtra(StudyError, code="HR-105"):
    """An optional package is needed and not installed."""


class ProgramInvalid(StudyError, code="HR-106"):
    """A program leaves out what it must say of itself, or is not where its package says it is."""


class ArgumentInvalid(StudyError, TypeError, code="HR-107"):
    """An argument of a public function is of a type that it does not take, or has a name that it does not know."""


class SystemUnsupported(StudyError, code="HR-108"):
    """What was asked for needs a system of the POSIX family, and this is another."""


# ---- 2xx: the waist -------------------------------------------------------------------------------------------------
class WaistError(HedgerowError):
    """A query, a channel, a budget or a ledger."""


class UnboundedSum(WaistError, code="HR-210"):
    """Noise or fixed-point encoding was asked for a sum that declares no bound."""


class UnlawfulChannel(WaistError, code="HR-211"):
    """Clip, compression, mechanism and aggregation do not fit together."""


class SlotFilled(WaistError, code="HR-212"):
    """A program tried to replace protection that its caller had chosen."""


class BudgetExhausted(WaistError, code="HR-213"):
    """The next query would exceed the budget; it was refused before any party was asked it."""

    _unasked = "This question was not asked."


class BudgetInvalid(WaistError, code="HR-214"):
    """A budget, noise multiplier, rate or radius is out of its range."""


class MixedUnits(WaistError, code="HR-215"):
    """A record-level and a party-level guarantee were mixed."""


class DisclosureExceeded(WaistError, code="HR-216"):
    """More exact numbers would be asked of a party, over a whole study, than the values that it holds allow."""


class NobodyAnswered(WaistError, code="HR-220", asked=True):
    """No party of the cohort answered a question that needs an answer."""


class PartyDeclined(WaistError, code="HR-221", asked=True):
    """A party refused or failed; only the code of its reason is known here."""

    def __init__(self, reason: str, *, codes: dict[str, str] | None = None, remedy: str = "") -> None:
        self.codes = codes or {}
        super().__init__(reason, remedy=remedy)


class ContributionInvalid(WaistError, code="HR-222", asked=True):
    """A contribution has the wrong keys, shape, type, or a value that is not finite."""


class NotNamed(WaistError, code="HR-224"):
    """A local function or preparation cannot be named by its import path."""


class ViewNotRecorded(WaistError, code="HR-230"):
    """The view of an observer was asked of a federation that does not record it."""


class LedgerDamaged(WaistError, code="HR-231"):
    """A ledger file has a gap, a double entry, or a broken chain."""


class CohortTooSmall(WaistError, code="HR-240"):
    """A total that hides its rows was asked of so few parties that it would show them."""


class RoundRefused(WaistError, code="HR-241", asked=True):
    """A round of an aggregation ended without a total; nothing of what it hides was revealed."""


class MessageRefused(WaistError, code="HR-242", asked=True):
    """A message of a protocol is malformed, repeated, altered, or asks what must not be answered."""


class RangeExceeded(WaistError, code="HR-243", asked=True):
    """Fixed-point numbers of the chosen size cannot hold a contribution or the total."""


class KeyInvalid(WaistError, code="HR-244", asked=True):
    """A key, a signature or a roster is not what it should be."""


class NotAligned(WaistError, code="HR-248"):
    """Parties that hold columns of their own were asked for what needs a common order of rows."""


class LabelsExposed(WaistError, code="HR-247"):
    """Training across columns would tell labels, or columns, to a party that was not said to share them."""


class CohortChanged(WaistError, code="HR-245", asked=True):
    """An exact total behind hidden rows was asked over other parties than the study's earlier ones."""


class AlignmentRefused(WaistError, code="HR-246", asked=True):
    """Lists of ids differ too much in length, are too long, or have too few people in common."""


# ---- 3xx: statistics ------------------------------------------------------------------------------------------------
class StatisticsError(HedgerowError):
    """Formulas and estimation."""


class FormulaInvalid(StatisticsError, code="HR-310"):
    """A formula cannot be read, or asks what cannot be computed record by record."""


class NotBinary(StatisticsError, code="HR-311"):
    """A logistic regression was asked for a target with other than two values."""


class NotIdentified(StatisticsError, code="HR-320", asked=True):
    """The information is singular: a column is constant or a combination of others."""


class Separated(StatisticsError, code="HR-321", asked=True):
    """Columns separate the classes, so that maximum-likelihood estimates are infinite."""


class NotConverged(StatisticsError, code="HR-322", asked=True):
    """An iteration ended before its tolerance was met."""


# ---- 4xx: data ------------------------------------------------------------------------------------------------------
class DataError(HedgerowError):
    """Tables, schemas and partitions."""


class UnknownDataset(DataError, code="HR-401"):
    """No data set of this name is catalogued."""


class MissingData(DataError, code="HR-402"):
    """A file or data set is not on this machine."""


class MissingColumn(DataError, code="HR-403"):
    """A named column is not in the table."""


class NotFinite(DataError, code="HR-404"):
    """A column holds missing or infinite values."""


class OutOfRange(DataError, code="HR-405"):
    """A value lies outside its declared range or levels."""


class EmptyParty(DataError, code="HR-406"):
    """A partition would leave a party without records."""


class ColumnsDiffer(DataError, code="HR-407"):
    """Parties hold different columns."""


class PartitionInvalid(DataError, code="HR-408"):
    """A partition cannot be made with these settings."""


class SchemaInvalid(DataError, code="HR-409"):
    """A schema contradicts itself or its table."""


class ColumnUndeclared(DataError, code="HR-410"):
    """What a column is would have to be guessed: its values do not tell it."""


class ChecksumMismatch(DataError, code="HR-411"):
    """A file is not the one that was catalogued."""


class RecordsElsewhere(DataError, code="HR-412"):
    """A federation was given where records are needed."""


class IdsInvalid(DataError, code="HR-413"):
    """Ids of a list cannot be aligned: missing, empty, twice, not text or whole numbers, or guessable one by one."""


# ---- 5xx: learning --------------------------------------------------------------------------------------------------
class LearningError(HedgerowError):
    """Models and training settings."""


class ModelInvalid(LearningError, code="HR-510"):
    """A module cannot be trained federatedly or does not fit the data."""


class SettingsInvalid(LearningError, code="HR-511"):
    """A setting of a program is out of its range."""


# ---- 6xx: stations, guards, coordinators, rails ---------------------------------------------------------------------
class StationError(HedgerowError):
    """A station, its guard, a coordinator, or the rail between them."""


class ConfigInvalid(StationError, code="HR-601"):
    """The configuration of a station or a coordinator has an unknown key, a wrong type or an impossible combination."""


class ProgramForbidden(StationError, code="HR-602"):
    """A station's guard does not allow this program, its version, or the code that is installed."""


class ColumnForbidden(StationError, code="HR-603"):
    """A station's guard does not allow a column to be used."""


class TooFewRecords(StationError, code="HR-604"):
    """A station holds fewer records than its guard wants behind an answer."""


class CohortForbidden(StationError, code="HR-605"):
    """A total would be of fewer parties than a station's guard allows."""


class ProtectionRequired(StationError, code="HR-606"):
    """A station's guard wants hidden rows, proofs, noise, or more of it than a question has."""


class SubmissionUnapproved(StationError, code="HR-607"):
    """A question belongs to a study that a station has not approved."""


class SubmissionRefused(StationError, code="HR-608"):
    """Whoever answers for a station refused a study."""


class QuestionUnannounced(StationError, code="HR-609"):
    """A question is not among those that a study announced when it was approved."""


class OutsideHours(StationError, code="HR-610"):
    """A station answers at other hours."""


class LimitExceeded(StationError, code="HR-611"):
    """A question comes too soon, or is larger than a station accepts or sends."""


class RailUnavailable(StationError, code="HR-612"):
    """A rail cannot be laid: an address is taken or cannot be reached, or a certificate is not accepted."""


class StationUnknown(StationError, code="HR-613"):
    """A name is not on the roster, or was taken off it."""


class SourceUnreadable(StationError, code="HR-614"):
    """A station's data source cannot be read as its configuration says."""


class StateLost(StationError, code="HR-615"):
    """A party was asked to go on from something that it no longer keeps."""


class ResourcesExceeded(StationError, code="HR-616"):
    """A study's rehearsal or a question takes more time or memory than a station gives it."""


class JournalLost(StationError, code="HR-618"):
    """A station's journal lacks entries that it had: what was spent is not known there."""


def catalogue() -> dict[str, type[HedgerowError]]:
    """Return every code and its class, in order."""
    found: dict[str, type[HedgerowError]] = {}
    todo = list(HedgerowError.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind.code:
            found[kind.code] = kind
    return dict(sorted(found.items()))
