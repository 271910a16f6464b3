"""What conversations of this room have in common: their result, and a driver for one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Contribution, Conversation, Correspondent, Result, Step
from hedgerow.errors import HedgerowError

__all__ = ["Contribution", "Conversation", "Correspondent", "Step", "Total", "drive"]


@dataclass(frozen=True)
class Total:
    """A total that was formed without a row being seen.

    Attributes
    ----------
    total : array of shape (size,), unsigned
        Sum of the counted parties' encoded rows, modulo the ring.
    counted : tuple of str
        The parties whose rows are in it.
    masked : mapping from party to array of shape (size,)
        What the server saw of each row.
    refused : int
        Rows that came and were left out because they were not proved; which these are, no party is told.
    """

    total: Array
    counted: tuple[str, ...]
    masked: Mapping[str, Array] = field(default_factory=dict)
    refused: int = 0


def drive(
    conversation: Conversation[Result],
    correspondents: Mapping[str, Correspondent],
    contributions: Mapping[str, Contribution] | None = None,
    *,
    drops: Callable[[str, str], bool] = lambda step, party: False,
    refused: dict[str, str] | None = None,
) -> Result:
    """Carry a conversation between a server and correspondents of this process to its end.

    Parameters
    ----------
    drops : callable
        `(step, party) -> bool`: whether the party's answer to this step is lost.
    refused : dict, optional
        Is filled with the code with which each party refused a step.
    """
    try:
        step = next(conversation)
        while True:
            answers = {}
            for party, letter in step.letters.items():
                if drops(step.name, party):
                    continue
                given = (contributions or {})[party] if step.contributes else None
                try:
                    answers[party] = correspondents[party].answer(step.name, letter, given)
                except HedgerowError as error:
                    if refused is not None:
                        refused[party] = error.code
            step = conversation.send(answers)
    except StopIteration as end:
        result: Result = end.value
        return result
