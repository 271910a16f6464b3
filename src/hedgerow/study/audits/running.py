"""Train once more, with canaries, and keep what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Charge, Unit
from hedgerow.core.federation import Federation, handle, inside
from hedgerow.data import Table
from hedgerow.errors import SettingsInvalid
from hedgerow.store import Driven, drive
from hedgerow.store.drive import Program

from ..build import Built, build
from ..catalogue import listing
from ..planned import with_noise
from ..quiet import quiet
from ..rehearse import rehearse_built
from ..study import Study
from .added import Added, AddedRecords
from .added_parties import AddedParties
from .evidence import Evidence
from .witness import Witness

LOST = 10.0
"""A canary is left out whose deviation is so many times what it would be if it were alone."""

MOST_NUMBERS = 50_000_000
"""Numbers of all canaries' contributions to one question, which are held at once."""


@dataclass(frozen=True)
class Audited:
    """What the runs of an audit showed.

    Attributes
    ----------
    unit : {"record", "party"}
    charges : list of Charge
        Of one run, as its ledger has them.
    evidence : tuple of Evidence
        Of each run.
    ended : str
        How the last run ended.
    """

    unit: Unit
    charges: list[Charge]
    evidence: tuple[Evidence, ...]
    ended: str


def audited(
    study: Study,
    *,
    canaries: int = 400,
    runs: int = 1,
    seed: int = 0,
    data_dir: str | Path | None = None,
    make: Callable[[Study], Built] | None = None,
    on_run: Callable[[int], None] = lambda done: None,
) -> Audited:
    """Run a study with canaries, in runs that are the audit's own.

    Parameters
    ----------
    canaries : int
        At most so many in each run; fewer where there are fewer than two numbers for each.
    runs : int
        Each with other coins and other noise: a statistic of few numbers needs many.
    seed : int
        Of coins, canaries and noise.
    make : callable, optional
        Makes a study ready; by default `hedgerow.study.build`.

    Raises
    ------
    SettingsInvalid (HR-511)
        The study cannot be audited, the sentence says why; or a number is out of range.
    """
    for name, value, least in (("canaries", canaries, 1), ("runs", runs, 1), ("seed", seed, 0)):
        if value < least:
            raise SettingsInvalid(f"{name} is {value}.", remedy=f"Give at least {least}.")
    m, unit = auditable(study, canaries, make=make, data_dir=data_dir)
    made = make or partial(build, data_dir=data_dir)
    with quiet():
        study = with_noise(study, made, data_dir)
    found = []
    charges: list[Charge] = []
    ended = ""
    for k in range(runs):
        evidence, charges, ended = _one(made(replaced(study, seed + k)), unit, m, seed + k)
        found.append(evidence)
        on_run(k + 1)
    return Audited(unit, charges, tuple(found), ended)


def auditable(
    study: Study,
    canaries: int = 400,
    *,
    make: Callable[[Study], Built] | None = None,
    data_dir: str | Path | None = None,
) -> tuple[int, Unit]:
    """How many canaries a study can have, and what one is; no party is asked.

    Raises
    ------
    SettingsInvalid (HR-511)
        The study cannot be audited; the sentence says why. Questions whose noise is not followed are seen in a run alone.
    """
    if study.apart or listing(study.program.name).columns == "apart":
        raise SettingsInvalid(
            f"the parties of {study.name!r} hold different columns, and protocols between them have no noisy total in which a "
            "canary could be looked for.",
            remedy="Audit a study whose parties hold the same columns.",
        )
    if study.attack is not None and study.attack.act != "none":
        raise SettingsInvalid(
            f"parties of {study.name!r} lie, and an audit compares with the ledger what honest parties leak.",
            remedy='Audit it with nobody acting: --set attack.act="none".',
        )
    if listing(study.program.name).with_test:
        raise SettingsInvalid(
            f"{study.program.name} measures by itself: it may fit models in runs of its own, which an audit does not see.",
            remedy="Audit one of its models as a study, such as private_logistic with epsilon = 1.",
        )
    made = make or partial(build, data_dir=data_dir)
    with quiet():
        study = with_noise(study, made, data_dir)
        foreseen = rehearse_built(made(study), rounds=1)
    noisy = [one for one in foreseen.entries if one.event.kind not in ("none", "nonprivate", "rows")]
    if not noisy:
        raise SettingsInvalid(
            f"the study {study.name!r} releases no noisy sum by itself, so there is no epsilon that an audit could compare.",
            remedy="Give it a mechanism; or, where the program makes runs of its own, audit one of these as a study.",
        )
    unit: Unit = noisy[-1].unit or "record"
    numbers = max(one.numbers or 1 for one in noisy)
    return max(1, min(canaries, numbers // 2, MOST_NUMBERS // numbers)), unit


def replaced(study: Study, seed: int) -> Study:
    """The study with another seed of noise, samples and partition."""
    return study.model_copy(update={"seed": (study.simulation_seed or 0) + 1000 + seed})


def _one(built: Built, unit: Unit, m: int, seed: int) -> tuple[Evidence, list[Charge], str]:
    """One run with canaries: what it showed, what its ledger holds, and how it ended."""
    program = built.listing.program(built.settings, built.test)
    witness, ended = witnessed(program, built.federation, unit=unit, canaries=m, seed=seed)
    if isinstance(witness.added, AddedRecords) and ended.state is not None:
        witness.evidence.losses = losses_of(built, ended.state, witness.added.records)
    charges = built.run.ledger.charges(unit)
    witness.evidence.held_against(charges)
    return witness.evidence, charges, ended.stopped


def losses_of(built: Built, state: Any, records: Mapping[str, Array]) -> Array | None:
    """What a last model loses on each canary's record, shape (m,): all that is seen of who is shown the model alone.

    None of a program whose metrics have no loss.
    """
    watch, schema, found = built.listing.watch, built.schema, []
    if watch is None:
        return None
    columns = {name: np.asarray(values) for name, values in records.items() if name in schema.names}
    table = Table(columns, schema)
    for c in range(len(table)):
        metrics = watch(built.settings, state, schema, table.take(np.array([c])))
        if "test loss" not in metrics:
            return None
        found.append(float(metrics["test loss"]))
    return np.array(found)


def witnessed(program: Program, federation: Federation, *, unit: Unit, canaries: int, seed: int = 0) -> tuple[Witness, Driven]:
    """Run a program once on a simulated federation to which canaries are added; return who saw it, and how it ended.

    Parameters
    ----------
    program : callable
        As `hedgerow.drive` takes it.
    federation : Federation
        Of `hedgerow.simulate`, before its first question. It has the canaries afterwards, so it is of no other use.
    unit : {"record", "party"}
        What a canary is: the unit of the bounds that are charged.
    canaries : int
        At most half as many as there are numbers in a release can be told apart.

    Raises
    ------
    SettingsInvalid (HR-511)
        A question has noise that an audit cannot follow, or none; or nothing noisy was released.
    """
    run = inside(federation).run
    run.holdings = None  # what parties hold is known: it is the audit's own simulation
    if unit == "record":
        added: Added = AddedRecords.to(run, run.schema, canaries, np.random.default_rng(seed))
    else:
        added = AddedParties.to(run, canaries, seed)
    run.__dict__.pop("size", None)
    witness = Witness(added)
    run.views = cast(Any, witness)
    whole = handle(inside(federation)._replace(cohort=Cohort(run.engine.parties)))  # canaries are among the parties now
    ended = drive(program, whole, progress=False)
    if not witness.evidence.releases:
        raise SettingsInvalid(
            f"no noisy sum was released: the program {ended.stopped}. {ended.reason}".strip(),
            remedy="Audit a study that asks through its federation; a program that makes runs of its own is not seen.",
        )
    if witness.open:
        raise SettingsInvalid(
            f"{witness.open[0]} was released without noise, so that no epsilon is finite.",
            remedy="Protect every question, or leave the evaluation on the parties out.",
        )
    return witness, ended


@dataclass(frozen=True)
class Scores:
    """Canaries of all runs side by side, for an auditor who knows the samples, and for an observer who does not.

    Attributes
    ----------
    inside : array of bool, shape (k,)
        Of the canaries that joined some sample and could be told apart there.
    share : array of shape (k,)
        Of what was charged, the share that was found: 1 where a canary is in and the ledger right, 0 where it is out.
    error : array of shape (k,)
        Standard deviation of that share, by the noise that was charged.
    members, others : arrays of shape (n,)
        Log-odds of having been in, of canaries that are in and of those that are not: of all, whether they joined or not, since
        that is the observer's secret.
    """

    inside: Array
    share: Array
    error: Array
    members: Array
    others: Array

    @classmethod
    def of(cls, evidence: Sequence[Evidence]) -> Scores:
        """Decorrelate: what one canary adds is not found in another's score."""
        parts = [_scores(one) for one in evidence]
        known = [np.concatenate([part[i] for part in parts]) for i in range(3)]
        looked = [one.log_odds != 0 for one in evidence]  # which are looked at follows from public contributions alone
        members, others = (
            np.concatenate([one.log_odds[at & (one.inside == side)] for one, at in zip(evidence, looked, strict=True)])
            for side in (True, False)
        )
        return cls(known[0], known[1], known[2], members, others)


def _scores(one: Evidence) -> tuple[Array, Array, Array]:
    size = np.diag(one.gram)
    seen = np.flatnonzero(size > 0)
    if not len(seen):
        return np.zeros(0, bool), np.zeros(0), np.zeros(0)
    scale = np.sqrt(size[seen])
    inverse = np.linalg.pinv(one.gram[np.ix_(seen, seen)] / scale / scale[:, None], rcond=1e-9, hermitian=True)
    inverse = inverse / scale / scale[:, None]
    share, error = inverse @ one.along[seen], np.sqrt(np.maximum(np.diag(inverse), 0))
    sure = (error > 0) & (error * scale < LOST)
    return one.inside[seen][sure], share[sure], error[sure]
