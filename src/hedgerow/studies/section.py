"""The base of a study's sections."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a study; every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)
