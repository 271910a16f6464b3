"""The section [attack] of a study: which parties of a simulation lie, how, when, and what they know.

A lie is told with a party's own records, or with what its own local function returned: it goes through the party's clip,
noise and masks. What is forged is the row as it leaves the party, behind clip and noise, before it is masked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from .section import Section

ActName = Literal[
    "none",
    "label-flip",
    "noise",
    "backdoor",
    "single-target",
    "replace",
    "sign-flip",
    "scale",
    "gaussian",
    "alie",
    "ipm",
    "min-max",
    "free-rider",
    "sybil",
]

LIES_IN_RECORDS = ("label-flip", "noise", "backdoor", "single-target")
"""Acts that change records."""

OMNISCIENT = ("gaussian", "alie", "ipm", "min-max")
"""Acts that follow from rows of others."""

AIMED = ("backdoor", "single-target")
"""Acts that want one answer, and so have a success that is measured."""


@dataclass(frozen=True)
class Strength:
    """What `strength` is of an act.

    Attributes
    ----------
    means : str
    default : float, optional
        None where it follows from the numbers of parties.
    positive : bool
        Whether it is above zero.
    zero : bool
        Whether zero is allowed besides.
    """

    means: str
    default: float | None
    positive: bool = True
    zero: bool = False

    def allows(self, value: float) -> bool:
        """Whether an act may be so strong."""
        return math.isfinite(value) and (value > 0 or (self.zero and value == 0) or (not self.positive and value != 0))


STRENGTHS: dict[str, Strength] = {
    "replace": Strength("factor of the liars' rows", None),
    "sign-flip": Strength("factor of the liars' rows, whose sign is turned", 4.0),
    "scale": Strength("factor of the liars' rows", 1000.0, positive=False),
    "gaussian": Strength("standard deviation, in units of the mean spread of the rows that are seen", 100.0),
    "alie": Strength("z, distance from the mean in standard deviations", None),
    "ipm": Strength("factor of the mean, whose sign is turned", 0.5),
    "free-rider": Strength("noise, in units of the root mean square of what was broadcast; 0 for zeros", 0.0, zero=True),
}
"""Acts that have a strength; of other acts it is refused."""


class TriggerSection(Section):
    """What makes a record a stamped one: a bright square of an image, or values of columns."""

    at: tuple[int, int] | None = Field(None, description="row and column of the square's first pixel")
    size: int = Field(3, ge=1, description="of the square's side, in pixels")
    value: float | None = Field(None, allow_inf_nan=False, description="of its pixels; the upper end of the declared range")
    image: str | None = Field(None, description="the column of images; the only one if not given")
    columns: dict[str, float | str] = Field(default_factory=dict, description="values of columns, by their names")

    @model_validator(mode="after")
    def one_kind(self) -> TriggerSection:
        if (self.at is None) == (not self.columns):
            raise ValueError("a trigger is a square of an image, at = [24, 24], or values of columns, columns = { age = 90 }")
        if self.at is None and (self.value is not None or self.image is not None):
            raise ValueError("value and image are of a square: give at = [row, column] besides")
        if odd := [name for name, value in self.columns.items() if isinstance(value, float) and not math.isfinite(value)]:
            raise ValueError(f"columns gives {odd[0]!r} the value {self.columns[odd[0]]}: give a finite number, or a word")
        return self


class AttackSection(Section):
    """Parties that lie in a simulation: which, how, when, and what they know."""

    act: ActName = Field(description='what they do; "none" for nothing, with the success of the act measured all the same')
    parties: float | tuple[str, ...] = Field(0.2, description="which parties: a share, drawn by the seed, or names")
    kind: Literal["lie", "forge"] = Field(
        "lie", description="whether rows pass their own clip and noise; what is forged is changed behind them"
    )
    knows: Literal["own", "colluders", "all"] = Field(
        "colluders", description="whose rows they see: their own, those of all liars, or those of all parties"
    )
    strength: float | None = Field(None, description="of the act; its meaning and default are in the table of acts")
    boost: float = Field(1.0, gt=0, allow_inf_nan=False, description="factor of the rows that liars make of changed records")
    share: float = Field(0.5, gt=0, le=1, description="backdoor: share of a liar's records that are stamped")
    target: int | str | None = Field(
        None,
        description="backdoor, single-target: the class that is to be predicted; of other acts its success is measured alone",
    )
    source: int | str | None = Field(None, description="single-target, backdoor: the class whose records are changed")
    trigger: TriggerSection | None = Field(None, description="backdoor: what stamped records carry")
    features: tuple[str, ...] = Field((), description="noise: columns that are drawn anew; all features with a range")
    sybils: bool = Field(False, description="whether all liars send the row that the first of them made")
    from_round: int = Field(1, ge=1, description="the first question of the program in which they act")
    every: int = Field(1, ge=1, description="they act in each so many questions from then on")
    until: int | None = Field(None, ge=1, description="the last question in which they act")

    @model_validator(mode="after")
    def fits(self) -> AttackSection:
        found = [*self._of_records(), *self._of_rows()]
        if isinstance(self.parties, tuple) and not self.parties:
            found.append("parties names nobody: give names, or a share above 0")
        if not isinstance(self.parties, tuple) and not 0 < self.parties < 1:
            found.append(f"parties = {self.parties:g}: a share lies between 0 and 1")
        if self.until is not None and self.until < self.from_round:
            found.append(f"until = {self.until} is before from_round = {self.from_round}")
        if found:
            raise ValueError("; ".join(found))
        return self

    def _of_records(self) -> list[str]:
        """What does not fit of the keys of changed records."""
        found, act = [], self.act
        if act in AIMED and self.target is None:
            found.append(f'act = "{act}" wants a target, the class that is to be predicted')
        if act == "backdoor" and self.trigger is None:
            found.append('act = "backdoor" wants a trigger, such as trigger = { at = [24, 24], size = 3 }')
        if act == "single-target" and self.source is None:
            found.append('act = "single-target" wants a source, the class whose records get the target')
        if act == "single-target" and self.trigger is not None:
            found.append('a trigger is for act = "backdoor"')
        if self.target is None and (self.trigger is not None or self.source is not None):
            found.append("a trigger or a source wants a target, the class that is to be predicted")
        if self.features and act != "noise":
            found.append(f'features are for act = "noise" (given: {act!r})')
        if self.boost != 1 and act not in LIES_IN_RECORDS and act != "none":
            found.append(f"boost is for acts that change records; {act!r} has a strength or none")
        return found

    def _of_rows(self) -> list[str]:
        """What does not fit of the keys of changed rows."""
        found, act, known = [], self.act, STRENGTHS.get(self.act)
        if self.strength is not None and known is None and act != "none":
            found.append(f"act = {act!r} has no strength")
        if self.strength is not None and known is not None and not known.allows(self.strength):
            found.append(f"strength = {self.strength:g} of act = {act!r} is too small or not finite: it is the {known.means}")
        if self.knows == "own" and (act == "sybil" or self.sybils):
            found.append('sybils send the row that the first of them made, so that they know it: knows = "colluders"')
        if self.kind == "forge" and act in LIES_IN_RECORDS and self.boost == 1 and not self.sybils:
            found.append(
                f"act = {act!r} is a lie in records, which pass the party's own clip; what is forged is a row: boost it"
            )
        return found

    @property
    def aimed(self) -> bool:
        """Whether a success is measured: the target is predicted of others."""
        return self.target is not None and (self.trigger is not None or self.source is not None)
