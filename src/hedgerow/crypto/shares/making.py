"""All sides of both protocols, by their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..keys import AgreementKey, Roster
from .aggregator import Aggregator
from .party import AdditiveParty
from .proving import ProvingParty
from .settings import AdditiveShares
from .verifying import VerifyingAggregator


def aggregators_of(settings: AdditiveShares, roster: Roster | None = None) -> list[Aggregator]:
    """Make all aggregators here, with fresh keys: then this process could see every row, and the protocol is rehearsed."""
    keys = [AgreementKey.fresh() for _ in range(settings.aggregators)]
    publics = [key.public for key in keys]
    return [aggregator_of(settings, key, publics, roster=roster) for key in keys]


def aggregator_of(settings: AdditiveShares, key: AgreementKey, aggregators: Sequence[bytes], **how: Any) -> Aggregator:
    """Make one aggregator, whose `least` is that of the settings or a larger one of its own."""
    how["least"] = max(settings.least, how.get("least", 0))
    return (VerifyingAggregator if settings.verified else Aggregator)(key, aggregators, **how)


def party_of(id: str, settings: AdditiveShares, aggregators: Sequence[bytes], **how: Any) -> AdditiveParty:
    """Make a party's side."""
    return (ProvingParty if settings.verified else AdditiveParty)(id, settings, aggregators, **how)
