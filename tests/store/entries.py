"""Entries of made-up questions."""

from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry


def entry(round=1, *, cohort=0, event=None, sampling=None, unit="record", mechanism="Gaussian(2) at the party", **others):
    """One question with Gaussian noise."""
    return Entry(
        round=round,
        cohort=cohort,
        verb="sum",
        query="helpers:totals",
        parties=3,
        numbers=4,
        contribution="sum (3,), n ()",
        bytes_up=16.0,
        bytes_down=0.0,
        bound="l2(1) per record",
        clip="none",
        compression="none",
        mechanism=mechanism,
        aggregation="plain",
        unit=unit,
        event=event or Event("gaussian", 2.0),
        sampling=sampling or Sampling(),
        randomness="system",
        **others,
    )
