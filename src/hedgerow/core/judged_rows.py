"""How many rows of a question were refused, by number alone: which these were, nobody is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .engine import Inbox, Outbox


@dataclass(frozen=True)
class JudgedRows:
    """One question whose rows were proved to be within their bound.

    Attributes
    ----------
    question : int
        Its number in its branch.
    branch, query : str
    proved : str
        What each row was proved to be; empty in a simulation that carries out no proofs.
    came, refused : int
        Rows that came, and those of them that are in no total. Of a cohort drawn by a rate, whose size noise at the server has
        to hide, the expected number of rows stands for that which came.
    """

    question: int
    branch: str
    query: str
    proved: str
    came: int
    refused: int

    def __str__(self) -> str:
        return f"refused: {self.refused} of {self.came}"


def judged_rows(outbox: Outbox, inbox: Inbox, expected: float) -> JudgedRows:
    """How many rows of a question were refused.

    Of a cohort whose parties joined by chance, in secret, the `expected` number is told in place of how many came.
    """
    question, came = outbox.question, len(inbox.answered) + inbox.refused
    sampling = question.cohort.sampling
    if sampling.kind == "poisson" and not outbox.release.shows_cohort(sampling):
        came = max(round(expected), inbox.refused)
    return JudgedRows(question.number, question.branch, question.name, inbox.proved, came, inbox.refused)


def in_all(judged: Iterable[JudgedRows]) -> tuple[int, int]:
    """Rows refused and rows that came, in all questions."""
    found = list(judged)
    return sum(one.refused for one in found), sum(one.came for one in found)


def refused_words(judged: Iterable[JudgedRows]) -> str:
    """What a list of facts about a federation ends with: ", 3 of 8 rows refused", or nothing where none were."""
    refused, came = in_all(judged)
    return f", {refused} of {came} rows refused" if refused else ""
