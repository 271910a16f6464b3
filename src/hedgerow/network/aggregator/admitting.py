"""Whether an aggregator adds up the shares of a study: read as stations read it, and held against its own guard."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hedgerow.crypto.keys import Roster
from hedgerow.crypto.schemes import aggregators_needed
from hedgerow.errors import CohortTooSmall, KeyInvalid, SubmissionRefused
from hedgerow.network.station.admitted import read_description, read_study, title_of
from hedgerow.network.station.wording import plain

from .config import AggregatorConfig


def admit_study(config: AggregatorConfig, mine: bytes, roster: Roster, toml: bytes, description: bytes) -> str:
    """Refuse a study that this aggregator does not add up; return in words what it is.

    Parameters
    ----------
    mine : bytes
        Its public key for shares.
    roster : Roster
        Everybody's identity, as its welcome lists them.

    Raises
    ------
    KeyInvalid (HR-244), CohortTooSmall (HR-240), SubmissionRefused (HR-608)
    """
    told, study = read_description(description), read_study(toml)
    guard, title = config.guard, plain(title_of(toml))
    if guard.studies is not None and not any(fnmatchcase(study.name, one) for one in guard.studies):
        raise SubmissionRefused(
            f"the study {study.name!r} is none of guard.studies: {', '.join(guard.studies) or 'none'}.", remedy="List it there."
        )
    needed = aggregators_needed(study.protection.slots()["aggregation"])
    known = dict(told.aggregators)
    if not needed or needed != len(known) or known.get(config.name) != mine:
        raise KeyInvalid(
            f"the study splits rows among {needed} aggregators, and names {', '.join(known) or 'none'}, or another key.",
            remedy="A coordinator names as many as a study says, each by the key that it has now.",
        )
    pins = config.aggregators
    if pins and {name: key.hex() for name, key in known.items()} != pins:
        raise KeyInvalid(
            f"{', '.join(known)} would add up, and [aggregators] here names {', '.join(pins)}, or other keys.",
            remedy="Pin the same everywhere: `hedgerow aggregator pin` prints the lines.",
        )
    if (parties := sum(told.stations.values())) < guard.least:
        raise CohortTooSmall(
            f"the study has {parties} parties, and guard.least is {guard.least}.", remedy="Ask more parties.", asked=False
        )
    if guard.signed and (unsigned := [name for name, n in told.stations.items() if n > 1 or name not in roster]):
        raise KeyInvalid(
            f"{', '.join(unsigned[:5])}: not on the roster here, or a gateway of several parties, which sign nothing.",
            remedy="Take in the latest welcome, which `hedgerow keys welcome` writes at the coordinator; "
            "or set guard.signed = false, and trust the coordinator to make up no party.",
        )
    others, noise = ", ".join(name for name in known if name != config.name), study.protection.mechanism
    proved = "; rows are proved" if study.protection.slots()["aggregation"].verified else ""
    adds = f"; adds {noise.law} noise of its own to each total" if noise is not None and noise.at == "aggregators" else ""
    return f"{title or study.name}: {parties} parties at {', '.join(told.stations)}; with {others}{proved}{adds}"
