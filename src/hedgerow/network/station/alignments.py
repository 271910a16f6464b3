"""Alignments that a station has begun, in its journal: of which study, with which list of people, and with whom.

Two alignments of one study tell by their difference who joined a list in between, down to one person. So a study aligns once,
and an entry is on the disk before the first letter of it leaves; one that came to nothing counts too, since a partner may have
learned from it what it wanted. Of all studies together each partner has so many in 31 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hedgerow.errors import LimitExceeded, SubmissionRefused

from .journal import StationEntry, StationJournal
from .vertical_section import VerticalSection

BEGUN = "aligns"
"""Code of the journal's entry."""

MONTH = timedelta(days=31)


class AskedAlignment(NamedTuple):
    """An alignment that a question would begin.

    Attributes
    ----------
    people : str
        Digest of the list of people here, which stays here.
    partners : tuple of str
    begins : bool
        Whether what follows from the list leaves with this step; before it keys alone are exchanged.
    """

    people: str
    partners: tuple[str, ...]
    begins: bool = True


class Alignments:
    """The alignments of a station.

    Parameters
    ----------
    journal : StationJournal
    """

    def __init__(self, journal: StationJournal) -> None:
        self._journal = journal

    def admit(self, rules: VerticalSection, study: str, asked: AskedAlignment, now: datetime) -> None:
        """Refuse an alignment that was begun before, or one more than a partner has in a month.

        Raises
        ------
        SubmissionRefused (HR-608)
            The study has begun an alignment; the people here are the same, or have changed.
        LimitExceeded (HR-611)
        """
        begun = self._journal.begun(BEGUN)
        if before := next((entry for entry in begun if entry.study == study), None):
            same = "the same list" if before.people == asked.people else "another list"
            raise SubmissionRefused(
                f"the study began an alignment of {same} on {before.at[:10]}, and a study aligns once: the difference of two "
                "would tell of single people.",
                remedy="Submit it anew. What came of an alignment is kept until the study ends.",
            )
        recent = [entry for entry in begun if datetime.fromisoformat(entry.at) > now - MONTH]
        for partner in asked.partners:
            if (n := sum(partner in entry.partners.split(", ") for entry in recent)) >= rules.alignments_per_month:
                raise LimitExceeded(
                    f"{n} alignments with {partner} were begun in 31 days, and guard.vertical.alignments_per_month is "
                    f"{rules.alignments_per_month}.",
                    remedy="Wait, or let one study ask everything.",
                )

    def begin(self, rules: VerticalSection, study: str, letter: int, asked: AskedAlignment | None, now: datetime) -> None:
        """Note an alignment that begins; it is on the disk when this returns. Where `asked` is None, nothing is aligned.

        It is admitted when keys are exchanged, so that no station begins where another refuses.

        Raises
        ------
        SubmissionRefused (HR-608), LimitExceeded (HR-611), CannotWrite (HR-104)
        """
        if asked is None:
            return
        self.admit(rules, study, asked, now)
        if not asked.begins:
            return
        at = now.astimezone(UTC).isoformat(timespec="milliseconds")
        about = {"function": f"alignment with {_and(asked.partners)}", "people": asked.people}
        self._journal.write(StationEntry(at, "align", study, letter, BEGUN, partners=", ".join(asked.partners), **about))


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
