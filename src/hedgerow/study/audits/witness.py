"""The auditor of a simulation: it sees each question, its exact total and what was released, and keeps evidence alone.

It stands where a run's views are recorded. No row is kept: of 400 canaries and 10^6 numbers that would be gigabytes a round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import blocks
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.events import Sampling
from hedgerow.core.view import Observation
from hedgerow.errors import SettingsInvalid, ViewNotRecorded

from .added import Added
from .claims import claim_of, refuse_unknown
from .evidence import Evidence
from .totals import clipped


@dataclass
class Witness:
    """Records evidence of canaries in place of views.

    Attributes
    ----------
    evidence : Evidence
    units : set of str
        Whose bounds were charged.
    open : list of str
        Questions whose answers left without noise.
    """

    added: Added
    recording: bool = False
    evidence: Evidence = field(init=False)
    units: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evidence = Evidence(self.added.inside)

    def note(self, outbox: Outbox, inbox: Inbox, released: Array | None) -> None:
        """Take down one exchange."""
        release, layout = outbox.release, inbox.layout or outbox.layout
        if outbox.question.verb == "each":
            return
        if release.mechanism is None and release.plan is None:
            self.open.append(outbox.question.name)
            return
        refuse_unknown(outbox)
        if released is None or layout is None or release.bounds is None:
            return
        claim = claim_of(outbox, layout, len(inbox.answered))
        known = self.added.known(outbox, inbox.answered)
        rows = self.added.rows(outbox, layout, inbox.answered)
        if rows.shape[-1] != layout.size:
            raise SettingsInvalid(
                f"{outbox.question.name} has {layout.size} numbers, and {rows.shape[-1]} of a canary alone.",
                remedy="Its contribution follows the records, so canaries cannot be compared with a total.",
            )
        self.units.add(release.unit or "")
        if len(rows) and release.unit == "record":  # parties are clipped later
            lengths = [bound.size(rows[:, part]) / bound.radius for part, bound in blocks(release.bounds, layout)]
            self.evidence.law.longest = max(self.evidence.law.longest, float(np.max(lengths)))
        sampling = outbox.question.cohort.sampling
        charged = Sampling() if release.shows_cohort(sampling) else sampling.as_charged(release.unit or "record")
        self.evidence.made.append((charged, release.event))
        X = clipped(rows, release.bounds, layout) / claim.deviation
        y, known = (released - known) / claim.deviation, known / claim.deviation
        self.evidence.add(y, X, known, self.added.drawn(outbox, inbox.answered), claim.law)

    def of(self, observer: str) -> list[Observation]:
        """Nothing is kept of what anybody saw."""
        raise ViewNotRecorded(f"the view of {observer!r} is not recorded in an audit.", remedy="Run the study with views.")
