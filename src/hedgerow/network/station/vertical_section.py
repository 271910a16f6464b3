"""`[guard.vertical]`: what a station allows of studies over columns that lie apart, where other stations know the same people.

    [guard.vertical]
    alignment = true                 # find out, with others, which of the people here they know too
    partners = ["beta"]              # with these stations alone
    seats = true                     # rows of common people leave: sealed to a partner, or masked to the hub in secret order
    least_common = 10                # fewest common people; fewest in a group, and outside it

Without the section nothing of it is allowed. The limits hold whatever a study says: its own may be stricter and no laxer.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from hedgerow.study.section import Section


class VerticalSection(Section):
    """Studies over columns that lie apart."""

    alignment: bool = Field(False, description="whether ids here may be matched with those of other stations, sealed")
    partners: tuple[str, ...] | None = Field(
        None, description="stations with which they may be; all on the roster if not given"
    )
    seats: bool = Field(
        False, description="whether numbers for each common person may leave: to the hub in secret order, or to a partner"
    )
    least_common: int = Field(10, ge=2, description="fewest common people, and fewest in each group of them and outside it")
    most_ids: int = Field(1_000_000, ge=1, description="longest list of ids of another station")
    ratio: float = Field(100.0, ge=1, description="how many times as long as the list here a partner's may be")
    alignments_per_month: int = Field(10, ge=1, description="with each partner, in 31 days, of all studies together")

    @model_validator(mode="after")
    def rows_need_an_order(self) -> VerticalSection:
        if self.seats and not self.alignment:
            raise ValueError("seats without alignment: rows that leave are those of an alignment")
        return self
