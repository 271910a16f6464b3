"""Settings of additive shares."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.errors import SettingsInvalid

from ..cohort import lawful_least, whole

MOST_VERIFYING = 3
"""Aggregators to whom rows are proved, at most."""


@dataclass(frozen=True)
class AdditiveShares:
    """Settings of additive shares.

    Parameters
    ----------
    aggregators : int
        Among how many a row is split; one of them must be honest.
    least : int
        The smallest set of which an aggregator gives its total; at least 3.
    rounds : int
        Rounds of an epoch; then every party takes a fresh key.
    verified : bool
        Whether each row comes with a proof, itself shared, that it is within its bound; then 2 or 3 aggregators.
    """

    aggregators: int = 3
    least: int = 3
    rounds: int = 1024
    verified: bool = False

    def __post_init__(self) -> None:
        whole(aggregators=self.aggregators, least=self.least, rounds=self.rounds)
        lawful_least(self.least)
        if not 2 <= self.aggregators <= 64 or not 1 <= self.rounds < 2**32:
            raise SettingsInvalid(
                f"aggregators={self.aggregators}, rounds={self.rounds}.", remedy="2 to 64 aggregators, 1 round or more."
            )
        if type(self.verified) is not bool or (self.verified and self.aggregators > MOST_VERIFYING):
            raise SettingsInvalid(
                f"verified={self.verified!r} with {self.aggregators} aggregators.",
                remedy=f"verified is true or false; rows are proved to 2 or {MOST_VERIFYING} aggregators.",
            )
