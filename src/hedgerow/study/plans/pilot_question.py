"""The question that a plan's knowledge comes from: second moments at a small epsilon, asked once of the study's owners.

    run folder is empty     `pilot_moments` is run with the study's data, inputs and ledger, every owner adding its own noise
    it holds a run          what that released is read again; nobody is asked, and nothing is charged

What would make the plan fail, whatever the question releases, is refused before it is asked. The question carries
[party_budgets]: what each owner offers at most over this question and the plan's. Its epsilon is charged to the ledger that the
study's [budget] shares, and owners' budgets in the plan cover both. The folder may be that of a run at stations, which was
submitted by itself (`question_study`).

A plan made again, without an owner or with other numbers of records, keeps to what was released: of the records that there were
when it was asked, by whose number its sums are divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import StudyInvalid
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.forecasts.second_moments import PilotState, estimate_of
from hedgerow.market.plans.plan import refuse_offers
from hedgerow.market.prices.posted import LearnerTerms, OwnerTerms
from hedgerow.market.prices.sum_noise import SumNoise
from hedgerow.privacy.accounting.gaussian import gaussian_epsilon, gaussian_noise
from hedgerow.store import read_arrays
from hedgerow.store.checkpoint import join

from ..build import build
from ..catalogue import listing
from ..keys import keys_of
from ..quiet import quiet
from ..runner import run
from ..study import Study, load, parse
from .owners_file import OwnersFile
from .planning import QueriesAsked

QUESTION = "pilot_moments"
CHECKPOINT = "checkpoint.safetensors"
LEAST_DELTA = 1e-9
"""Of budgets where noise is Laplace's, which needs none, and nothing was spent at a larger one."""


def ask_once(
    file: OwnersFile, asked: QueriesAsked, folder: str | Path, data_dir: str | Path | None = None
) -> tuple[KnownLoss, bool]:
    """What the question releases, and whether it was asked now.

    Parameters
    ----------
    folder : str or Path
        Of the run, which is made where it is missing.

    Raises
    ------
    StudyInvalid (HR-101)
        The study has no ledger that it shares; or the folder holds another question than the file's.
    BudgetExhausted (HR-213)
        The ledger has no room for it.
    """
    folder, question = Path(folder), question_study(file, asked)
    n = _settings(question)["n_records"]
    source = f"second moments of the owners' records at epsilon {file.pilot.epsilon:g}, delta {delta_of(file, asked):g}"
    now = not was_asked(folder)
    if now:
        _refuse_others(file, question, data_dir)
        state = run(question, folder, data_dir=data_dir, command="hedgerow plan").run.state
    else:
        before = load(folder / "study.toml")
        _same(before, question, folder)
        state, then = released(folder), _settings(before)["n_records"]
        source += f", asked when they were {then:,}".replace(",", "\N{NO-BREAK SPACE}") if then != n else ""
        n = then
    estimate = estimate_of(state, asked.loss, asked.spec, n, asked.steps.box, source)
    return KnownLoss.of(estimate, asked.steps, asked.noise.horizon, quadratic=asked.loss.kind == "squared"), now


def was_asked(folder: str | Path) -> bool:
    """Whether a folder holds what the question released, so that nobody is asked again.

    Raises
    ------
    StudyInvalid (HR-101)
        It holds a run that released nothing.
    """
    folder = Path(folder)
    there = (folder / CHECKPOINT).exists()
    if not there and (folder / "study.toml").exists():
        raise StudyInvalid(
            f"{folder} holds a run that did not end: {CHECKPOINT} is missing.",
            remedy="Look into the ledger, whether it was charged. Asking anew costs epsilon again: name an empty folder by "
            "[pilot] run.",
        )
    return there


def _refuse_others(file: OwnersFile, question: Study, data_dir: str | Path | None) -> None:
    """Refuse a study of parties that the file does not name, or leave out by the study's own left_out; nobody is asked."""
    with quiet():  # the run will say the same
        names = build(question, data_dir=data_dir).partition.names
    out = _settings(question).get("left_out") or ()
    others = [name for name in names if name not in file.owners and name not in out]
    if others:
        some = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        raise StudyInvalid(
            f"the study's parties {some} are no owners of the file, and the question would be asked of and charged to them.",
            remedy="Give each an offer in [owners], or name it in the study: [program] left_out.",
        )


def question_study(file: OwnersFile, asked: QueriesAsked) -> Study:
    """The study that asks the question: data, parties, inputs and budget are those of the plan's study."""
    study = asked.study
    assert study is not None
    refuse_unplannable(file, asked)
    if study.budget is None or study.budget.ledger is None or study.budget.unit != "record":
        raise StudyInvalid(
            "pilot.epsilon is charged to a ledger that both studies share, and the study names none.",
            remedy='Give the study [budget] epsilon, delta, unit = "record" and ledger = "owners.sqlite".',
        )
    keys = keys_of(listing(QUESTION)).model_fields
    given = {key: value for key, value in (study.program.model_extra or {}).items() if key in keys}
    program = {
        **given,
        "name": QUESTION,
        "epsilon": file.pilot.epsilon,
        "delta": delta_of(file, asked),
        "noise_at": "party",
        "n_records": sum(one.records for one in file.owners.values()),
    }
    out = left_out_by(study, file)
    program |= {"left_out": out} if out else {}
    plain = study.model_dump(mode="json", exclude={"program", "party_budgets", "forecast", "evaluation", "quick", "comparison"})
    evaluation = {"on": "none", "holdout": study.evaluation.holdout}
    kept = {key: value for key, value in plain.items() if value is not None}
    budgets = {name: ledger_budget(asked.noise, one.epsilon[1], delta_of(file, asked)) for name, one in file.owners.items()}
    kept |= {"name": f"{study.name}-pilot", "program": program, "evaluation": evaluation, "baselines": False}
    return parse(kept | {"party_budgets": budgets})


def refuse_unplannable(file: OwnersFile, asked: QueriesAsked) -> None:
    """Refuse offers of which no plan could be made, whatever the question releases; nobody was asked then.

    Raises
    ------
    BudgetInvalid (HR-214)
        An owner offers no more than the question costs.
    SettingsInvalid (HR-511)
        Numbers out of their range; one round, of whose noise nothing reaches the result, beside prices.
    """
    offers, noise, value = file.offers(), asked.noise, None if file.value is None else file.value.per_fitness
    refuse_offers(offers, value, spent_by(file, asked))
    if value is not None:
        guess = KnownLoss.of_bounds(asked.spec.size, asked.steps, noise.horizon, curvature=(GUESS, GUESS), least=1.0)
        LearnerTerms(noise, guess.sampling, guess.amplification, guess.bias, guess.least, value)
        low, high = np.array([one.epsilon for one in offers.values()], float).T
        records, costs = np.array([(one.records, one.cost or 0.0) for one in offers.values()], float).T
        OwnerTerms(records, costs, low, high)


GUESS = 1e-3
"""A curvature, to see whether the steps let any noise into the result; whether they do is the same at every one."""


def ledger_budget(noise: SumNoise, epsilon: float, spent_delta: float) -> dict[str, Any]:
    """What an owner may lose by everything, as the ledger counts it: for a record that is there or not.

    Epsilons for a record that becomes another are halved: the same noise moves half as far.
    """
    epsilon = epsilon / (2 if noise.neighbours == "replace-one" else 1)
    if noise.law == "gaussian":
        return {"epsilon": epsilon, "delta": max(noise.delta, spent_delta)}
    return {"epsilon": epsilon, "delta": spent_delta or LEAST_DELTA, "accountant": "basic"}


def left_out_by(study: Study, file: OwnersFile) -> list[str]:
    """Parties that the study's own `left_out` names, and that made no offer since."""
    return [name for name in (study.program.model_extra or {}).get("left_out") or () if name not in file.owners]


def delta_of(file: OwnersFile, asked: QueriesAsked) -> float:
    """Delta of the question: where it is 0 its noise is Laplace's, as that of such a plan."""
    if file.pilot.delta is not None:
        return file.pilot.delta
    return asked.noise.delta if asked.noise.law == "gaussian" else 0.0


def spent_by(file: OwnersFile, asked: QueriesAsked) -> float:
    """What the question costs each owner, in the plan's neighbours.

    One record for another counts twice: 2 epsilon of Laplace noise; of Gaussian noise the epsilon, at the same delta, of one
    release that moves twice as far, which is a little more.
    """
    epsilon, delta = float(file.pilot.epsilon or 0.0), delta_of(file, asked)
    if asked.noise.neighbours != "replace-one" or not epsilon:
        return epsilon
    return float(f"{gaussian_epsilon(gaussian_noise(epsilon, delta) / 2, delta) * (1 + UP):.6g}") if delta else 2 * epsilon


UP = 1e-5
"""More than six digits round away."""


def released(folder: Path) -> PilotState:
    """What a run of the question released.

    Raises
    ------
    StudyInvalid (HR-101)
        The folder holds a run of another program.
    """
    arrays, about = read_arrays(folder / CHECKPOINT)
    if about.get("state") != PilotState.__name__:
        raise StudyInvalid(f"{folder} holds no run of {QUESTION}.", remedy="Name another folder: [pilot] run = ...")
    own = {key: value for key, value in arrays.items() if "/" not in key}
    state: PilotState = join(PilotState, own, about["plain"])
    return state


def _same(before: Study, now: Study, folder: Path) -> None:
    """Refuse a run whose question was another one: of other records, other inputs or another cost.

    Numbers of records, who is left out, and the box say nothing of the question. Files are compared by their names, since a
    study may have moved with them.
    """
    one, other = (_question_of(study) for study in (before, now))
    found = [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]
    if found:
        said = ", ".join(f"{key} ({one.get(key)!r}, now {other.get(key)!r})" for key in found[:3])
        raise StudyInvalid(
            f"the run in {folder} asked another question: {said}.",
            remedy="A further question costs epsilon again: name an empty folder by [pilot] run, or keep to the first.",
        )


def _question_of(study: Study) -> Mapping[str, Any]:
    """What makes a question the one that it is."""
    found = {key: value for key, value in _settings(study).items() if key not in ("n_records", "left_out", "box")}
    data = study.data.model_dump(mode="json")
    data["path"] = None if study.data.path is None else Path(study.data.path).name
    found |= {f"data.{key}": value for key, value in data.items()}
    drawn = study.data.records is not None or study.evaluation.holdout > 0
    return found | {"evaluation.holdout": study.evaluation.holdout, "seed": study.seed if drawn else None}


def _settings(study: Study) -> Mapping[str, Any]:
    return {"name": study.program.name} | (study.program.model_extra or {})
