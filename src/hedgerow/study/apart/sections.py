"""The sections of a study whose parties hold different columns of the same people: `[roles]` and `[alignment]`.

[data]
name = "cardio"                          # one catalogued set, cut by columns in a simulation
# or a file for each party:
# [data.parties]
# clinic = "clinic.csv"
# laboratory = "laboratory.csv"

[roles]
clinic = ["age", "gender", "height", "weight", "smoke"]
laboratory = ["ap_hi", "ap_lo", "cholesterol", "gluc", "alco", "active", "cardio"]
label = "laboratory.cardio"
overlap = 0.9

[alignment]
on = "id"
by = "x25519"
least = 10
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hedgerow.errors import suggestion
from hedgerow.study.section import Section

HUB, WORLD = "hub", "world"
"""Who else may see something: the server, and whoever reads what is released. No party may have these names."""


class AlignmentSection(Section):
    """How parties with different columns find the people whom they have in common."""

    on: str = Field(description="the column of ids, which every party holds")
    normal: Literal["nfkc-casefold", "exact"] = Field(
        "nfkc-casefold",
        description="the public form of ids before they are compared: NFKC, case folded, blanks stripped; or as is",
    )
    by: Literal["x25519", "kkrt"] = Field(
        "x25519", description="the protocol: x25519 to about 100 000 ids and any number of parties; kkrt for two large lists"
    )
    least: int = Field(10, ge=3, description="fewer common people than this are refused")
    ratio: float = Field(100.0, ge=1, description="lists whose sizes differ by more than this factor are refused")
    most: int = Field(2_000_000, ge=1, description="a longer list is refused")
    small_domain: Literal["refused", "accepted"] = Field(
        "refused", description="ids of so few possible values, below about 2^40, that a party could try all of them"
    )
    topology: Literal["star", "ring"] = Field(
        "star",
        description="of three or more parties: a star, whose centre learns pairwise sizes, or a ring, in which nobody does",
    )


class RolesSection(BaseModel):
    """Which party holds which columns, each by its name as a key; who holds the label."""

    model_config = ConfigDict(extra="allow", frozen=True)

    label: str | None = Field(None, description="the label and its holder, as party.column")
    overlap: float = Field(
        1.0,
        gt=0,
        le=1,
        description="simulated: the share of people whom all parties hold; each other one is at one party alone",
    )
    keep: dict[str, tuple[float, float] | list[str]] = Field(
        default_factory=dict, description="records that parties keep: those with values in a range, ends included, or of levels"
    )

    @model_validator(mode="before")
    @classmethod
    def parties_have_lists(cls, given: Any) -> Any:
        """Refuse a key that is neither known nor a party with a list of columns, with the nearest known one."""
        if not isinstance(given, Mapping):
            return given
        wrong = []
        for name, columns in given.items():
            if name in cls.model_fields:
                continue
            if not isinstance(columns, list | tuple) or not all(isinstance(column, str) for column in columns):
                near = suggestion(str(name), cls.model_fields)
                known = near if near.startswith("Did") else "A party has a list of columns, such as clinic = ['age', 'weight']."
                wrong.append(f"{name!r} is no party, since it has no list of columns. {known}")
            elif name in (HUB, WORLD):
                wrong.append(f"a party is called {name!r}, which is the name of another role. Choose another name.")
            elif doubled := [column for column, n in Counter(columns).items() if n > 1]:
                wrong.append(f"{name} has the column {doubled[0]!r} twice")
        if wrong:
            raise ValueError("; ".join(wrong))
        return given

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each party, in the order of the file."""
        return {name: tuple(columns) for name, columns in (self.model_extra or {}).items()}

    @property
    def seat(self) -> str | None:
        """The party that holds the label."""
        return None if self.label is None else self.label.partition(".")[0]

    @property
    def target(self) -> str | None:
        """The column of the label."""
        return None if self.label is None else self.label.partition(".")[2]
