"""Settings of SecAgg, on which both sides must agree to the letter."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Literal, NoReturn

from hedgerow.crypto.cohort import FLOOR, numeric, whole
from hedgerow.crypto.fixedpoint import WORDS
from hedgerow.crypto.graph import LARGEST_DEGREE, majority, neighbours_needed, safest
from hedgerow.crypto.messages import digest
from hedgerow.errors import CohortTooSmall, SettingsInvalid

COMPLETE = 100
"""Up to so many parties everybody is a neighbour of everybody."""

MOST_PARTIES = 1 << 22
MOST_ROUNDS = 256

GRINDING = 2.0**-60
"""Chance of a bad graph that is accepted of a server that may lie: it can try a million names of an epoch for a good one."""


@dataclass(frozen=True)
class SecAgg:
    """How rows are hidden from the server.

    Parameters
    ----------
    neighbours : int, optional
        With how many a party shares masks: even, or all the others. Default: all the others up to 100 parties, and above it as
        many as `corrupt` and `dropouts` ask for. A number that is given is taken, and against those fractions not checked.
    threshold : int, optional
        How many neighbours t of a party's k must answer to open a mask. Above half of them; above two thirds when the server
        may lie. Default: as few as `corrupt` allows. As many as t, or as 2t - k when the server may lie, may not collude.
    least : int
        Fewest rows in a total, enforced by the parties; 3 or more.
    corrupt, dropouts : float
        Fractions of parties that collude with the server, and that drop out of a round. When the server may lie, `corrupt` is
        of the whole roster: it chooses whom to ask, and could ask all of those that collude.
    adversary : {"curious", "active"}
        Whether the server follows the protocol, or may lie; then parties need identities and a roster.
    rounds_per_epoch : int
        Rounds of one set-up, up to 256.
    bits : {16, 32, 64}
        Of the ring.
    once_per_context : bool
        A party answers one round for each model, question and settings: no two totals of the same over different cohorts.

    Raises
    ------
    SettingsInvalid (HR-511)
        The settings cannot work or would not protect.
    """

    neighbours: int | None = None
    threshold: int | None = None
    least: int = FLOOR
    corrupt: float = 0.05
    dropouts: float = 0.1
    adversary: Literal["curious", "active"] = "curious"
    rounds_per_epoch: int = 16
    bits: int = 64
    once_per_context: bool = False

    def __post_init__(self) -> None:
        numeric(corrupt=self.corrupt, dropouts=self.dropouts)
        whole(
            neighbours=self.neighbours, threshold=self.threshold, least=self.least, rounds=self.rounds_per_epoch, bits=self.bits
        )
        k, t = self.neighbours, self.threshold
        if k is not None and not 2 <= k <= LARGEST_DEGREE:
            _refuse(f"neighbours = {k}", f"Take 2 to {LARGEST_DEGREE}, or leave it out.")
        if t is not None and not 2 <= t <= LARGEST_DEGREE:
            _refuse(f"threshold = {t}", "One share would be the secret; leave it out for the least safe threshold.")
        if self.adversary not in ("curious", "active"):
            _refuse(f"adversary = {self.adversary!r}", "Take 'curious' or 'active'.")
        if k is not None and t is not None and not majority(k, self.active) <= t <= k:
            _refuse(f"threshold = {t} of {k} neighbours", f"Take {majority(k, self.active)} to {k}.")
        if not FLOOR <= self.least <= MOST_PARTIES:
            _refuse(f"least = {self.least}", f"Of fewer than {FLOOR} rows a total shows one of them to the owner of the other.")
        if not (self.corrupt >= 0 and self.dropouts >= 0 and self.corrupt + self.dropouts < 1):
            _refuse(f"corrupt = {self.corrupt}, dropouts = {self.dropouts}", "Fractions of the parties, together below one.")
        if not 1 <= self.rounds_per_epoch <= MOST_ROUNDS:
            _refuse(f"rounds_per_epoch = {self.rounds_per_epoch}", f"Take 1 to {MOST_ROUNDS}.")
        if self.bits not in WORDS:
            _refuse(f"bits = {self.bits}", "Take 16, 32 or 64.")

    @property
    def active(self) -> bool:
        """Whether the server may lie."""
        return self.adversary == "active"

    @cached_property
    def digest(self) -> bytes:
        """Identifies the settings, 32 bytes."""
        return digest("secagg settings", repr(astuple(self)).encode())

    def degree(self, n: int, enrolled: int = 0) -> tuple[int, int]:
        """Neighbours k and threshold t among n parties, of as many as are on the roster.

        Raises
        ------
        CohortTooSmall (HR-240)
            So few parties cannot hide a row.
        SettingsInvalid (HR-511)
            The settings do not fit so many parties.
        """
        if n < max(self.least, FLOOR):
            raise CohortTooSmall(
                f"{n} parties, and totals are of {max(self.least, FLOOR)} or more.", remedy="Ask more parties at once."
            )
        bad = min(n, math.ceil(self.corrupt * (max(n, enrolled) if self.active else n)))
        if self.neighbours is None and self.threshold is None and n > COMPLETE:
            privacy = GRINDING if self.active else 2.0**-40
            k, t = neighbours_needed(n, bad / n, self.dropouts, privacy, active=self.active)
            return k, t
        k = n - 1 if self.neighbours is None else min(self.neighbours, n - 1)
        needed = safest(k, bad, self.active) if k == n - 1 else majority(k, self.active)
        t = self.threshold or needed
        if max(t, needed) > k:
            raise CohortTooSmall(
                f"{n} parties have {k} neighbours each, {bad} may collude, and {max(t, needed)} must answer.",
                remedy="Ask more parties at once, or expect fewer to collude: corrupt=...",
            )
        if t < needed or (k % 2 and k != n - 1) or k > LARGEST_DEGREE:
            _refuse(
                f"neighbours = {k}, threshold = {t} among {n} parties",
                f"neighbours: even, or {n - 1}; at most {LARGEST_DEGREE}. threshold: {needed} or more.",
            )
        return k, t


def _refuse(what: str, remedy: str) -> NoReturn:
    raise SettingsInvalid(f"{what} cannot protect a sum.", remedy=remedy)
