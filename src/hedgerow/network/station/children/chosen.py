"""Whether formulas of a question choose a few records of a station (`stats.selecting`), as its parties prepare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.core.disclosure import LEAST
from hedgerow.core.party import Parties, Party
from hedgerow.core.question import Question
from hedgerow.stats.factors import Term
from hedgerow.stats.selecting import chooses, few_chosen, terms_in

MOST_KEPT = 64
"""Answers that are kept; the same formula comes round after round."""


class ChosenRecords:
    """Looks at the records of parties.

    Parameters
    ----------
    parties : Parties
        All of them, as they are held.
    """

    def __init__(self, parties: Parties) -> None:
        self._parties = parties
        self._found: dict[Any, str] = {}

    def few(self, question: Question, ids: Sequence[str], together: bool) -> str:
        """What in a question chooses a few of the records of some parties, in words; "" for nothing.

        Parameters
        ----------
        together : bool
            Whether the records of all these parties are added up; else each party's by themselves.
        """
        if question.verb == "each":
            return ""
        view = tuple(question.view)
        for k, values in [*enumerate(one.settings for one in view), (len(view), question.settings)]:
            terms = tuple(term for term in dict.fromkeys(terms_in(values)) if chooses(term, self._parties.columns))
            key = (view[:k], terms, tuple(ids), together)
            if terms and key not in self._found:
                while len(self._found) >= MOST_KEPT:
                    self._found.pop(next(iter(self._found)))
                self._found[key] = self._look(view[:k], terms, ids, together)
            if terms and self._found[key]:
                return self._found[key]
        return ""

    def _look(self, view: tuple[Any, ...], terms: tuple[Term, ...], ids: Sequence[str], together: bool) -> str:
        found: list[Party] = []
        held = self._parties.prepared(view, together=False)
        for id in ids:
            try:
                found.append(held[held.position[id]])
            except (RecursionError, MemoryError):  # of these, what answers may have more left than what looks
                raise
            except Exception:  # a party whose records cannot be prepared answers nothing
                continue
        if together and found:
            names = found[0].columns
            columns = {name: np.concatenate([one.columns[name] for one in found]) for name in names}
            found = [Party("", columns, np.concatenate([one.w for one in found]))]
        return next(filter(None, (few_chosen(terms, one.columns, one.w, LEAST) for one in found)), "")
