"""The `[evaluation]` section of a study: on what a model is measured, when that is enough, and what is to be reached."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Evaluation(BaseModel):
    """On what a model is measured while it trains, and how often."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    on: Literal["test", "parties", "none"] = Field(
        "test", description="a table that the server holds, or sums over the parties"
    )
    holdout: float = Field(0.0, ge=0, lt=1, description="share of the records that become the server's test table")
    every: int | None = Field(
        None, ge=1, description='rounds between two measurements; by default 1, and once at the end for on = "parties"'
    )
    bins: int | None = Field(
        None,
        ge=2,
        le=10_000,
        description='bins of the ROC curve that on = "parties" asks for; by default 20, and more of many records',
    )
    groups: int | None = Field(
        None,
        ge=2,
        le=100,
        description='groups of the predicted probability, for a figure of calibration that on = "parties" asks for besides',
    )
    validation: float = Field(
        0.0, ge=0, lt=1, description='share of each party\'s records that is never trained on; on = "parties" measures there'
    )
    patience: int | None = Field(None, ge=1, description="stop after so many measurements without a better first metric")
    improvement: float = Field(0.0, ge=0, description="by how much a metric must be better to count, with patience")
    target: float | None = Field(None, description="report when the first metric reached this value, and at what cost")
    stop: bool = Field(False, description="end the run in the round in which the target is reached")

    tuning: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the server's table by which rounds are chosen (patience, target, keep), so that the rest of it, "
        "on which the other metrics are, chooses nothing",
    )
    membership: bool = Field(
        False, description="compare the losses of the parties' records with those of the server's: what the model leaks"
    )

    keep: Literal["last", "best"] = Field(
        "last", description="which round's model is the result: the last one's, or that in which the first metric was best"
    )

    @model_validator(mode="after")
    def measured(self) -> Evaluation:
        if self.on == "none" and self.by_round:
            raise ValueError('patience, target and keep = "best" need a metric, and on = "none" measures nothing')
        if self.stop and self.target is None:
            raise ValueError("stop ends a run at its target: give one, e.g. target = 0.9")
        if self.validation and self.on != "parties":
            raise ValueError(f'validation is measured at the parties: choose on = "parties" (given: {self.on!r})')
        if self.tuning and self.on != "test":
            raise ValueError(f'tuning is a part of the server\'s table: choose on = "test" (given: {self.on!r})')
        if self.groups is not None and self.on != "parties":
            raise ValueError(
                f'groups are of a calibration that parties are asked for: choose on = "parties" (given: {self.on!r})'
            )
        if self.bins is not None and self.on != "parties":
            raise ValueError(
                f'bins are those of the curve that parties are asked for: choose on = "parties" (given: {self.on!r})'
            )
        return self

    @property
    def by_round(self) -> bool:
        """Whether the study asks for a metric by round."""
        return self.patience is not None or self.target is not None or self.keep == "best"

    @property
    def between(self) -> int | None:
        """Rounds between two measurements; None where there is one, at the end.

        Parties are asked once, since each measurement is a further release of their records, unless `every` is given, or a
        metric by round is what the study asks for: patience, a target, the best round.
        """
        once = self.on == "parties" and not self.by_round
        return self.every or (None if once else 1)
