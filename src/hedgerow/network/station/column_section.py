"""`[data.columns.NAME]` of a station: what a column is declared to be, where the source has it, and how it is spelt there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from hedgerow.data.column import spelling
from hedgerow.study.declared import DeclaredColumn


class ColumnSection(DeclaredColumn):
    """The declaration of one column, and where the source has it."""

    missing: Literal["refuse", "drop"] | None = Field(
        None, description="whether it may be missing: models that read it drop such records; data.missing by default"
    )
    origin: str | None = Field(None, alias="from", description="name in the source, or FHIR element; the column's by default")
    form: Literal["age", "year"] | None = Field(None, alias="as", description="FHIR: what is made of a date of birth")
    at: str | None = Field(None, description="FHIR: the day on which the age is taken")
    partial: Literal["missing", "middle"] = Field("missing", description="FHIR: a date without day or month")
    code: str | tuple[str, ...] | None = Field(None, description="FHIR: system|code, one or several")
    concept: int | tuple[int, ...] | None = Field(None, description="OMOP: concept id, one or several")
    codes: dict[str, str] | None = Field(
        None, description="level of each code in the source; FHIR: of each system|code, for coded values"
    )
    value: Literal["last", "first", "mean", "min", "max", "count"] | None = Field(
        None, description="FHIR: which of a patient's observations"
    )
    convert: str | dict[str, float] = Field(
        default_factory=dict, description='an expression of x, e.g. "x / 88.42"; FHIR: factor from another UCUM unit'
    )
    comparator: Literal["refuse", "drop", "value"] = Field("refuse", description="FHIR: values such as '< 5'")
    status: tuple[str, ...] | None = Field(None, description="FHIR: statuses of observations that count")
    clinical: tuple[str, ...] | None = Field(None, description="FHIR: clinical statuses of conditions that count; any")
    verification: tuple[str, ...] | None = Field(None, description="FHIR: verification statuses that count; confirmed")
    since: str | None = Field(None, description="FHIR: from this day on")
    until: str | None = Field(None, description="FHIR: before this day")

    @field_validator("codes", mode="before")
    @classmethod
    def codes_as_words(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and all(isinstance(level, str | int | float) for level in given.values()):
            return {spelling(code): spelling(level) for code, level in given.items()}
        return given

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The declared range."""
        return self.range or (self.low, self.high)

    def given(self) -> set[str]:
        """Names of the fields that the file gives."""
        return set(self.model_fields_set)
