"""What follows from a plan, as files: the sections of a study, a whole study, and each owner's guard, all with the same digits.

study    [program] epsilons, weights, noise, delta, neighbours     what owners' answers are noised with
         [party_budgets] owner = { epsilon, delta }                 what each owner may lose by the whole study
         [forecast] measure, expected, low, high, source            what the report is compared with
guard    OWNER.toml: [guard] programs, require, budget              the same number, at the owner's own station
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.core.events import Charge
from hedgerow.core.toml import read_toml, to_toml, toml_line
from hedgerow.errors import CannotWrite, StudyInvalid
from hedgerow.market.plans.owners_plan import OwnersPlan
from hedgerow.privacy.accounting.calibration import charge_of
from hedgerow.privacy.accounting.gaussian import gaussian_noise

from ..study import BudgetSection, bundled, parse
from .owners_file import OwnersFile
from .pilot_question import QUESTION, ledger_budget, question_study
from .plan_places import refuse_names
from .planning import PROGRAM, asked_of


def sections(plan: OwnersPlan) -> dict[str, Any]:
    """What a plan adds to a study, as nested mappings."""
    noise, gaussian = plan.noise, plan.noise.law == "gaussian"
    program: dict[str, Any] = {"rounds": noise.horizon, "noise": noise.law, "neighbours": noise.neighbours}
    program |= {"delta": noise.delta} if gaussian else {}
    program |= {"epsilons": plan.epsilons, "weights": plan.weights, "n_records": plan.records}
    out = [one.name for one in plan.owners if not one.taken]
    program |= {"left_out": out} if out else {}
    f = plan.own
    forecast = {"measure": MEASURE, "expected": _told(f.expected), "low": _told(f.low), "high": _told(f.high)}
    budgets = {name: budget_of(plan, name) for name in plan.budgets}
    return {"program": program, "party_budgets": budgets, "forecast": forecast | {"source": source_of(plan)}}


def budget_of(plan: OwnersPlan, owner: str) -> dict[str, Any]:
    """What an owner may lose by everything, as the ledger counts it: for a record that is there or not."""
    return ledger_budget(plan.noise, plan.budgets[owner], plan.spent_delta)


MEASURE = "relative fitness"


def source_of(plan: OwnersPlan) -> str:
    """Where a plan's numbers come from, in a sentence."""
    of = f"the plan of owners {plan.digest}" if plan.digest else "a plan of owners"
    return f"On the owners' own records, by {of}; the loss is known by {plan.known.source}."


def snippet(plan: OwnersPlan) -> str:
    """The sections as a person copies them into a study: one line for each key."""
    found = sections(plan)
    program = {
        key: found["program"][key]
        for key in ("epsilons", "weights", "n_records", "left_out", "noise", "delta", "neighbours")
        if key in found["program"]
    }
    return _in_lines(found | {"program": program})


def study_text(plan: OwnersPlan, base: str | Path, folder: str | Path, made_from: str = "") -> str:
    """A whole study: the base with the plan's sections, its paths taken from `folder`.

    Parameters
    ----------
    base : str or Path
        A bundled study by name, or a file.
    folder : str or Path
        Where the study will lie.
    made_from : str
        Name of the file of owners, for the comment on top.

    Raises
    ------
    StudyInvalid (HR-101)
        The study would not be lawful; or its [budget] does not allow the plan's questions.
    """
    path = bundled().get(str(base)) or Path(base)
    found = read_toml(path.read_bytes(), str(path))
    planned = sections(plan)
    owners = {one.name for one in plan.owners}
    apart = [name for name in found.get("program", {}).get("left_out") or () if name not in owners]
    if apart:
        planned["program"]["left_out"] = [*apart, *planned["program"].get("left_out", ())]
    for section, values in planned.items():
        found[section] = {**found.get(section, {}), **values} if section == "program" else values
    _refuse_small(parse({"name": path.stem} | found).budget, plan)
    _moved(found, path.parent, Path(folder))
    ours = {name: found.pop(name) for name in sections(plan)}
    top = f"# Made by `hedgerow plan {made_from or 'owners.toml'}`" + (f", digest {plan.digest}" if plan.digest else "") + "."
    warned = "# Epsilons, weights, budgets and forecast are the plan's: plan anew rather than edit them."
    return f"{top}\n{warned}\n\n{to_toml(found).lstrip()}\n\n{_in_lines(ours)}\n"


def _refuse_small(section: BudgetSection | None, plan: OwnersPlan) -> None:
    """Refuse a base whose own budget would refuse a question of the plan, after others were asked."""
    if section is None:
        return
    if section.unit != "record":
        raise StudyInvalid(
            f"the study's [budget] is per {section.unit}, and a plan's questions are bounded per record.",
            remedy='Set unit = "record" in it.',
        )
    budget, charges = section.budget(), charges_of(plan)
    if not budget.admits(charges):
        raise StudyInvalid(
            f"the plan costs epsilon {budget.spent(charges):.6g} per record, and the study's [budget] is {budget}.",
            remedy="Raise budget.epsilon in the study, or plan with owners' epsilons up to it.",
        )


def charges_of(plan: OwnersPlan) -> list[Charge]:
    """What the ledger of a run will hold of a plan, for a record that is there or not: at the owner that adds least noise."""
    event = plan.answers().event()
    found = [charge_of(event.noise_multiplier, law=plan.noise.law)] * plan.noise.horizon
    if plan.spent:
        half = 2 if plan.noise.neighbours == "replace-one" else 1
        z = gaussian_noise(plan.spent, plan.spent_delta) if plan.spent_delta else 1 / plan.spent
        found.append(charge_of(half * z, law="gaussian" if plan.spent_delta else "laplace"))
    return found


def guard_text(plan: OwnersPlan, owner: str) -> str:
    """The [guard] of an owner's station: this program alone, with noise of its own, and the budget of the plan.

    Of an owner that is left out after the private question: that question alone, and what it cost.

    Raises
    ------
    StudyInvalid (HR-101)
        The owner takes no part.
    """
    asked = {one.name: one for one in plan.owners if one.taken or plan.spent}
    if owner not in asked:
        raise StudyInvalid(f"{owner!r} takes no part in the plan.", remedy=f"Owners that do: {', '.join(asked)}.")
    programs = [{"name": name} for name in [QUESTION] * bool(plan.spent) + [PROGRAM] * asked[owner].taken]
    limit = ledger_budget(plan.noise, asked[owner].budget, plan.spent_delta)
    budget = {**limit, "unit": "record", "trust": "nobody"}
    guard = {"programs": programs, "require": {"noise": "party"}, "budget": budget}
    of = f"the plan of owners {plan.digest}" if plan.digest else "a plan of owners"
    top = f"# For the station of {owner}, by {of}.\n{YOURS}"
    return f"{top}\n{_in_lines({'guard': guard})}\n"


YOURS = """# Add to [guard] what the owner alone knows: columns = [...] that may be used, and least_records behind an answer;
# and to each program its code = "sha256:...", which `hedgerow station check` prints.
"""


def write_study(plan: OwnersPlan, base: str | Path, path: str | Path, made_from: str = "") -> None:
    """Write the study of a plan."""
    _write(Path(path), study_text(plan, base, Path(path).parent, made_from))


def write_question(file: OwnersFile, path: str | Path, data_dir: str | Path | None = None) -> None:
    """Write the study of the private question that a file's plan would follow from.

    Raises
    ------
    StudyInvalid (HR-101)
        The file asks none, or the study shares no ledger.
    """
    if file.pilot.epsilon is None:
        raise StudyInvalid("the file has no pilot.epsilon, so its plan asks nothing.", remedy="[pilot] epsilon = 0.1")
    question = question_study(file, asked_of(file, data_dir)).model_dump(mode="json", exclude_defaults=True)
    _write(
        Path(path),
        f"# The question behind a plan, by the file of owners of digest {file.digest}.\n\n{to_toml(question).lstrip()}\n",
    )


def write_guards(plan: OwnersPlan, folder: str | Path) -> list[Path]:
    """Write a guard for each owner that takes part, or answered the private question: OWNER.toml in a folder."""
    owners = [one.name for one in plan.owners if one.taken or plan.spent]
    refuse_names(owners)
    paths = []
    for owner in owners:
        paths.append(Path(folder) / f"{owner}.toml")
        _write(paths[-1], guard_text(plan, owner))
    return paths


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}.", remedy="Name a place that you may write to.", asked=False) from error


def _moved(found: dict[str, Any], base: Path, folder: Path) -> None:
    """Paths that were relative to one folder, relative to another."""
    data, budget = found.get("data", {}), found.get("budget", {})
    for section, keys in ((data, ("path",)), (budget, ("ledger",)), (data.get("parties", {}), tuple(data.get("parties", {})))):
        for key in keys:
            if isinstance(section.get(key), str) and not Path(section[key]).is_absolute():
                section[key] = Path(os.path.relpath(base / section[key], folder)).as_posix()


def _in_lines(found: Mapping[str, Any]) -> str:
    """Sections with a line for each of their keys."""
    return "\n\n".join(
        "\n".join([f"[{name}]", *(toml_line(key, value) for key, value in values.items())]) for name, values in found.items()
    )


def _told(value: float) -> float:
    return float(f"{value:.4g}")
