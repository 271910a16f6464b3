"""Noise that hides a party in one total, and not in many: totals over changing parties tell the mean of their differences.

Noise of a bound per party frees questions of the rule that exact totals are over one set of parties (`crypto.standing`). It
does so while all answers of a study together use up no more than the noise of one (`core.disclosure.worn`), for the largest
number of answers that the study may have, repetitions included. Beyond that its totals are held to one set like exact ones,
from the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.disclosure import worn, worn_out
from hedgerow.core.events import Sampling
from hedgerow.crypto.aggregation import steadily
from hedgerow.errors import ProtectionRequired

if TYPE_CHECKING:
    from hedgerow.core.engine import Outbox

    from .config import RequireSection
    from .signatures import Announced


ANY = -1
"""A number of questions that nothing limits: the rehearsal was stopped, and the program says of no largest number of rounds."""

REPEATED = 10
"""Repetitions of questions whose answers are random, beyond as many as there are questions of their kind."""


def as_worn(outbox: Outbox, announced: Announced) -> Outbox:
    """A question that knows whether noise that hides parties is used up by all that its study may ask."""
    if not outbox.release.hides_parties:
        return outbox
    numbers = [most for kind, most in announced.most.items() if kind.verb != "each"]
    answers = sum(2 * most + REPEATED for most in numbers)
    return replace(outbox, worn=ANY in numbers or worn_out(answers * worn(outbox.release.event, Sampling())))


def admit_wear(require: RequireSection, outbox: Outbox) -> None:
    """Refuse parties that are drawn anew for each of so many questions that their noise hides none of them, behind hidden rows.

    Raises
    ------
    ProtectionRequired (HR-606)
    """
    if require.hidden_rows and outbox.worn and not steadily(outbox):
        raise ProtectionRequired(
            f"{outbox.question.name} asks parties that are drawn anew each time, more often than its noise hides one of them: "
            "totals over changing parties tell the mean of their differences, and guard.require.hidden_rows is set.",
            remedy="Ask everybody each time, ask fewer questions, or add more noise.",
        )
