"""Of which parties an aggregator has given totals: exact ones of one study are over a chain of sets, each within the last.

Two exact totals over nearly the same parties show the rest by subtraction. Parties of additive shares do not learn of whom a
total is; the aggregators do. So each of them gives no exact total of a study but over

    the same set as the last one          or one that
    is part of it                         nobody joins,
    leaves out `least` or more of it      nobody is alone in a difference.

One honest aggregator is enough: without it there is no total, so all totals of the study are over its chain, and what is
computed from them by adding and subtracting is about whole steps of that chain or about its last set. Whether a total is exact
the parties say, by the purpose of their keys: shares of an exact total are no shares of another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Protocol

from hedgerow.errors import CohortChanged
from hedgerow.store import Answered


def may_succeed(found: frozenset[str], last: frozenset[str] | None, least: int) -> bool:
    """Whether an exact total over some parties may be given after one over others."""
    return last is None or found == last or (found <= last and len(last) - len(found) >= least)


class WrittenOnce(Protocol):
    """What an aggregator has served, across restarts; `Answered` is one."""

    def seen(self, key: str) -> bytes | None: ...

    def write(self, key: str, digest: bytes) -> None: ...


class TotalsGiven:
    """Of which parties one aggregator gave totals of one study.

    Parameters
    ----------
    journal : WrittenOnce, optional
        Keeps the sets of exact totals across restarts; in memory if not given.
    told : callable, optional
        Learns of each total before it is given: the round, how many parties, how many numbers, whether parties hold it to one
        set as an exact one, and the law of the noise that this aggregator has added. What it raises keeps the total back.
    """

    def __init__(
        self, journal: WrittenOnce | None = None, told: Callable[[int, int, int, bool, str], object] = lambda *total: None
    ) -> None:
        self._journal: WrittenOnce = Answered(None) if journal is None else journal
        self._told = told
        self.last: frozenset[str] | None = None
        self._n = 0
        while (raw := self._journal.seen(f"exact total {self._n}")) is not None:
            self.last, self._n = frozenset(json.loads(raw)), self._n + 1

    def refuse_other(self, ids: Collection[str], least: int) -> None:
        """Refuse an exact total over a set that may not succeed the last one.

        Raises
        ------
        CohortChanged (HR-245)
        """
        found, last = frozenset(ids), self.last
        if last is None or may_succeed(found, last, least):
            return
        how = f"leave out {len(last) - len(found)} of them" if found <= last else "count some who were not among those"
        raise CohortChanged(
            f"an exact total over {len(found)} parties would follow one over {len(last)}, and {how}.",
            remedy=f"The same parties are asked for all exact totals of a study; or {least} and more are left out for good. "
            "Wait for those who are missing.",
        )

    def keep(self, round: int, parties: int, numbers: int, ids: Collection[str], least: int, noise: str = "") -> None:
        """Note a total that is given next, on the disk; `ids` of an exact one, which is refused as by `refuse_other`."""
        if ids:
            self.refuse_other(ids, least)
        self._told(round, parties, numbers, bool(ids), noise)
        if ids and frozenset(ids) != self.last:
            self._journal.write(f"exact total {self._n}", json.dumps(sorted(ids)).encode())
            self.last, self._n = frozenset(ids), self._n + 1
