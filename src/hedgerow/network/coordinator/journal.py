"""A coordinator's journal: every change of a study's state, and everything that stations were asked and answered.

Each entry continues the one before it by a hash, so that none can be changed, added or removed without trace, except at the
end; who notes the head elsewhere sees that too. Entries name studies, stations, sizes and codes, and hold no answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hedgerow.errors import catalogue
from hedgerow.store import JournalTable
from hedgerow.store.links import ChainLink

JOURNAL = JournalTable("journal", {"study": "TEXT"}, indices=("study, number",))


@dataclass(frozen=True)
class CoordinatorEntry:
    """One entry.

    Attributes
    ----------
    at : float
        Seconds since 1970.
    event : {"state", "asked", "came", "declined", "overlong", "refused"}
    about : mapping
        Of "state": `state` and `reason`. Of "asked": `kind` and `number` of the letters, `bytes` by station. Of "came": also
        `codes` of the stations that refused, and `silent`, those of which nothing came. Of "declined": `codes` by
        party, and how many `more`. Of "overlong": `parties` that sent more than their bound, and how many `more`. Of
        "refused": how many `rows` `of` those that came for a `query` were not proved to be within their bound.
    """

    number: int
    at: float
    study: str
    event: str
    about: Mapping[str, Any]
    hash: str

    @property
    def time(self) -> str:
        """Universal time, to the second."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def sentence(self) -> str:
        """The entry in words."""
        about = self.about
        if self.event == "state":
            return f"{about['state']}: {about['reason']}" if about["reason"] else str(about["state"])
        if self.event == "declined":
            said = [refusal(party, code) for party, code in about["codes"].items()]
            return "; ".join([*said, *([f"and {about['more']} more parties"] if about["more"] else [])])
        if self.event == "overlong":
            more = f" and {about['more']} more parties" if about["more"] else ""
            return f"zeros counted, for more came than the bound allows: {', '.join(about['parties'])}{more}"
        if self.event == "refused":
            return f"rows refused, since they were not proved: {about['rows']} of {about['of']} of {about['query']}"
        what = f"{about['kind']} {about['number'] >> 32}.{about['number'] & 0xFFFFFFFF}"
        sizes = ", ".join(f"{station} {size:,} bytes" for station, size in about["bytes"].items())
        if self.event == "asked":
            return f"{what}: asked {sizes}"
        parts = [f"came {sizes}"] if sizes else []
        parts += [refusal(station, code) for station, code in about["codes"].items()]
        parts += [f"nothing from {', '.join(about['silent'])}"] if about["silent"] else []
        return f"{what}: {'; '.join(parts) or 'nothing'}"


def refusal(station: str, code: str) -> str:
    """A station's refusal in words, of which only the code has crossed.

    Examples
    --------
    >>> refusal("beta", "HR-603")
    'beta refused: HR-603 ColumnForbidden: its guard does not allow a column to be used'
    """
    kind = catalogue().get(code)
    if not code:
        return f"{station} refused without a code"
    if kind is None:
        return f"{station} refused: {code}, which this version does not know"
    sentence = (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
    for start, instead in (("A station's ", "its "), ("A station ", "it "), ("Whoever answers for a station ", "its owner ")):
        if sentence.startswith(start):
            sentence = instead + sentence.removeprefix(start)
    return f"{station} refused: {code} {kind.__name__}: {sentence[:1].lower()}{sentence[1:]}"


def row(at: float, study: str, event: str, about: Mapping[str, Any]) -> tuple[tuple[str], str]:
    """An entry as the journal keeps it."""
    return (study,), json.dumps({"at": at, "event": event, "about": about})


def entry_of(link: ChainLink) -> CoordinatorEntry:
    """An entry as it was kept."""
    found = json.loads(link.text)
    return CoordinatorEntry(link.number, found["at"], link.columns[0], found["event"], found["about"], link.hash)
