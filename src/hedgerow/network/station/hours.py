"""Opening hours: `Mon-Fri 08:00-18:00`, in a station's own time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FORM = re.compile(r"(\w{3})(?:\s*-\s*(\w{3}))?\s+(\d\d?:\d\d)\s*-\s*(\d\d?:\d\d)")


@dataclass(frozen=True)
class Hours:
    """Some days of the week, from a time to a time; past midnight where the second is not later than the first."""

    days: frozenset[int]
    start: time
    end: time

    @classmethod
    def read(cls, text: str) -> Hours:
        """Read `Mon-Fri 08:00-18:00` or `Sat 10:00-12:00`; ValueError for anything else."""
        match = FORM.fullmatch(text.strip())
        try:
            if match is None:
                raise ValueError
            first = DAYS.index(match[1].lower())
            last = DAYS.index((match[2] or match[1]).lower())
            days = frozenset((first + i) % 7 for i in range((last - first) % 7 + 1))
            return cls(days, _time(match[3]), _time(match[4]))
        except ValueError:
            raise ValueError(f"{text!r} are no hours; e.g. 'Mon-Fri 08:00-18:00'") from None

    def holds(self, at: datetime) -> bool:
        """Whether a moment, in the station's time zone, is within."""
        now, today = at.time(), at.weekday()
        if self.start < self.end:
            return today in self.days and self.start <= now < self.end
        return (today in self.days and now >= self.start) or ((today - 1) % 7 in self.days and now < self.end)


def _time(text: str) -> time:
    hours, minutes = map(int, text.split(":"))
    return time(0, 0) if (hours, minutes) == (24, 0) else time(hours, minutes)
