"""What the owner of the data decides where a station's journal was lost, and no copy is whole: to begin anew.

Nobody knows then what was spent since the journal was whole. So the budget counts as spent, unless the owner says how much of
it was, and so do the exact numbers that `guard.disclosure_overall` allows; studies that were open are refused, since the
station no longer knows which of their letters it has answered. The decision is an entry of the journal that goes on, with who
took it and why, and the coordinator learns of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry
from hedgerow.errors import CannotWrite, JournalLost, LedgerDamaged
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.wire.heads import Head

from .base import Base
from .config import StationConfig
from .heads import FILE, read_mark, write_mark
from .journal import ANEW, PartyCharge, StationEntry, StationJournal
from .submissions import Submissions


@dataclass(frozen=True)
class Begun:
    """What came of a decision to begin anew.

    Attributes
    ----------
    epsilon : float or None
        Counted as spent; None where the guard sets no budget.
    refused : tuple of str
        Titles of the studies that were open.
    aside : Path or None
        Where the database lies that was no copy of this station's.
    """

    generation: int
    epsilon: float | None
    refused: tuple[str, ...]
    aside: Path | None


def begin_anew(
    config: StationConfig,
    keys: KeyFolder,
    database: Path,
    *,
    by: str,
    because: str,
    spent: float | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Begun:
    """Let a station go on whose journal was lost; the caller sees to it that the station does not run.

    Parameters
    ----------
    database : Path
        Where the station's database is, or was.
    spent : float, optional
        Epsilon of `guard.budget` that is counted as spent, by each party: by default all of it. It is counted as one release
        of that epsilon without a delta. So if the answers before the loss had this epsilon at the budget's delta, the guarantee
        of all answers together has twice the delta.

    Raises
    ------
    CannotWrite (HR-104)
        The journal is whole, or the epsilon is none; or the disk is full.
    """
    if spent is not None and not (spent >= 0 and math.isfinite(spent)):
        raise CannotWrite(f"an epsilon of {spent} was spent.", remedy="Say a number, 0 or more.", asked=False)
    mark, at = read_mark(keys.path / FILE), now().astimezone(UTC).isoformat(timespec="milliseconds")
    if mark is None:
        raise CannotWrite(
            f"the keys in {keys.path} know of no journal that was lost.",
            remedy="hedgerow station start makes one.",
            asked=False,
        )
    aside = _set_aside(database, mark, at)
    base = Base(database)
    try:
        journal, submissions = StationJournal(base), Submissions(base)
        if journal.contains(mark) or journal.generation() > mark.generation:
            raise CannotWrite(
                f"the journal in {database} is whole, as far as is known.", remedy="There is nothing to decide.", asked=False
            )
        open_ = submissions.all("waiting", "approved")
        limit, generation = config.guard.budget, max(mark.generation, journal.generation()) + 1
        epsilon = None if limit is None else limit.epsilon if spent is None else spent
        charges = () if limit is None or not epsilon else (_charge(epsilon, limit.budget().unit),)
        said = f"by {by}: {because}" + ("" if epsilon is None else f"; epsilon {epsilon:g} is counted as spent")
        told: dict[str, float] = {}
        if (most := config.guard.disclosure_overall) is not None and math.isfinite(most):
            told = {"exact": most, "noise": float(spent is None)}
            said += f"; {most:g} exact numbers for each value count as asked"
        about: dict[str, Any] = {"reason": said, "charges": charges, "generation": generation} | told
        with base.transaction():
            journal.write(StationEntry(at, "decision", "", 0, ANEW, **about))
            for one in open_:
                why = {"because": f"began anew: {because}", "code": JournalLost.code}
                submissions.put(one.decided(keys.key_material, "refused", by=by, at=at, **why))
        write_mark(keys.path / FILE, journal.head())
    finally:
        base.close()
    return Begun(generation, epsilon, tuple(one.title or one.id for one in open_), aside)


def _set_aside(database: Path, mark: Head, at: str) -> Path | None:
    """Take a database away that is none of this station's, or damaged; one that lacks its end goes on."""
    if not database.exists():
        return None
    with suppress(LedgerDamaged):
        base = Base(database)
        try:
            journal = StationJournal(base)
            n, _ = journal.verify()
            if journal.head().journal == mark.journal or journal.generation() > mark.generation or n == 0:
                return None
        finally:
            base.close()
    aside = database.with_name(f"{database.name}.aside-{at[:19].replace(':', '')}")
    try:
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.replace(database.with_name(database.name + end), aside.with_name(aside.name + end))
    except OSError as error:
        raise CannotWrite(f"{database}: {error.strerror}.", remedy="Make its folder writable.", asked=False) from error
    return aside


def _charge(epsilon: float, unit: str) -> PartyCharge:
    """A charge to every party for what is no longer known."""
    entry = Entry(
        round=0,
        cohort=0,
        verb="sum",
        query="what was answered before the journal was lost",
        parties=1.0,
        numbers=None,
        contribution="",
        bytes_up=None,
        bytes_down=0.0,
        bound="",
        clip="",
        compression="none",
        mechanism="",
        aggregation="",
        unit="party" if unit == "party" else "record",
        event=Event("pure", epsilon=epsilon),
        sampling=Sampling(),
        randomness="",
    )
    return PartyCharge("all", entry.to_json())
