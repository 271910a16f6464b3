"""`hedgerow plan`: with whom, at which epsilon, at what price; the study and the owners' guards that follow from it."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from hedgerow.errors import StudyInvalid

from .json_output import JsonOption, print_json

if TYPE_CHECKING:
    from hedgerow.market.plans.owners_plan import OwnersPlan

console = Console()

FEW = 12
"""Owners up to which the sections for the study are printed."""


def plan(
    owners: Annotated[Path, typer.Argument(help="A TOML file of owners: records, epsilons, costs.")],
    out: Annotated[Path | None, typer.Option(help="Write a page, e.g. plan.html.")] = None,
    write_study: Annotated[
        Path | None, typer.Option("--write-study", help="Write the file's study with the plan's epsilons, weights and budgets.")
    ] = None,
    write_guards: Annotated[
        Path | None, typer.Option("--write-guards", help="Folder for each owner's guard, OWNER.toml.", metavar="FOLDER")
    ] = None,
    write_question: Annotated[
        Path | None,
        typer.Option(
            "--write-question",
            help="Write the study of the private question (pilot.epsilon), to submit it to stations, and plan nothing.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of data sets (else HEDGEROW_DATA).", envvar="HEDGEROW_DATA")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan with whom, at which epsilon and at what price to ask, and forecast the result, before the first question."""
    from hedgerow.market.plans.plan_page import write_plan
    from hedgerow.study.plans import planned_files
    from hedgerow.study.plans.owners_file import load_owners
    from hedgerow.study.plans.pilot_question import was_asked
    from hedgerow.study.plans.plan_places import refuse_places, refuse_strangers
    from hedgerow.study.plans.planning import pilot_folder, plan_owners

    file = load_owners(owners)
    base, folder = file.study, pilot_folder(file, owners)
    asks = file.pilot.epsilon is not None and write_question is None and not was_asked(folder)
    if write_study is not None and base is None:
        raise StudyInvalid(
            "--write-study needs a study to start from.", remedy='Name it in the file of owners: study = "study.toml".'
        )
    files = {"--out": out, "--write-study": write_study, "--write-question": write_question}
    refuse_places(owners, file, files, write_guards)
    if write_study is not None:
        refuse_strangers(file, data_dir)
    if write_question is not None:
        planned_files.write_question(file, write_question, data_dir)
        whom = ",".join(file.owners) if len(file.owners) <= FEW else "those of the owners"
        _say(f"Question: {write_question}; submit it with --stations {whom}, and name the run's folder: [pilot] run = ...")
        return
    found = plan_owners(owners, data_dir=data_dir)
    wrote: dict[str, Any] = {"pilot": folder} if asks else {}
    if out is not None:
        write_plan(found, out, planned_files.snippet(found))
        wrote["page"] = out
    if write_study is not None and base is not None:
        planned_files.write_study(found, base, write_study, owners.name)
        wrote["study"] = write_study
    if write_guards is not None:
        wrote["guards"] = planned_files.write_guards(found, write_guards)
    if as_json:
        print_json(told(found) | {"wrote": wrote})
        return
    if asks:
        asked = f"epsilon {file.pilot.epsilon:g} of each owner, for a record that is there or not"
        _say(f"Asked once: {asked}, charged to the study's ledger. Its run is in {folder}.\n")
    show(found, planned_files.snippet(found) if len(found.coalition) <= FEW else "")
    out_of = [one.name for one in found.owners if not one.taken]
    if out is not None:
        _say(f"Page: {out}")
    if write_study is not None:
        _say(
            f"Study: {write_study}"
            + (f"; submit it with --stations {quote(','.join(found.epsilons))}" if len(out_of) > 0 else "")
        )
    if write_guards is not None:
        _say(f"Guards: {len(wrote['guards'])} in {write_guards}")


def show(found: OwnersPlan, sections: str = "") -> None:
    """Print a plan."""
    from hedgerow.market.plans import plan_page
    from hedgerow.market.plans.owners_plan import digits, money

    n, f = found.noise, found.fitness
    law = f"{n.law} noise at the owners" + (f", delta {n.delta:g}" if n.law == "gaussian" else "")
    whom = f"{len(found.coalition)} of {len(found.owners)} owners"
    _say(f"{found.title or 'Plan'}: {whom}, {n.horizon} questions, {law}, {n.neighbours}", "bold")
    console.print(plan_page.fitting(plan_page.owners_grid(found, "")))
    _say(f"{plan_page.left_out(found)} {plan_page.ADVANTAGE}")
    more = " Saturated: the result would be no better than zeros." * f.saturated
    more += f" {plan_page.advice(found)}" if plan_page.advice(found) else ""
    _say(
        f"\nForecast: relative fitness {digits(f.expected)}, in 90 of 100 runs between {digits(f.low)} and {digits(f.high)} "
        f"(noise {digits(f.noise)}, steps {digits(f.steps)}, sample {digits(f.sample)}).{more}"
    )
    whom = "everybody" if len(found.coalition) == len(found.owners) else "everybody, those left out at their highest epsilon"
    few = f"the {len(found.prefix)} best owners" if len(found.prefix) > 1 else "the best owner alone"
    few += f", of equal weight, {digits(found.prefix_fitness)}" if len(found.prefix) > 1 else f" {digits(found.prefix_fitness)}"
    _say(f"With {whom}: equal weights {digits(found.equal)}, best weights {digits(found.weighted)}; {few}.")
    if found.price is not None and found.payments is not None and found.value is not None:
        worth = f"A unit of relative fitness is worth {money(found.value)} to the learner."
        _say(f"{plan_page.incentive(found)} Payments {money(found.payments)} in all. {worth}")
    _say("\nAssumed", "bold")
    for sentence in found.assumptions:
        _say(f"- {sentence}")
    _say("Not seen", "bold")
    for sentence in found.unseen:
        _say(f"- {sentence}")
    if sections:
        _say("\n# for the study file")
        console.print(Text(sections), soft_wrap=True)


def told(found: OwnersPlan) -> dict[str, Any]:
    """A plan as JSON has it: everything that is printed, with all digits."""
    from hedgerow.market.plans.payment_terms import delivered
    from hedgerow.market.plans.plan import scaled

    plain = {
        field.name: getattr(found, field.name) for field in fields(found) if field.name not in ("known", "owners", "digest")
    }
    owners = [
        {field.name: getattr(one, field.name) for field in fields(one)} | {"takes_part": one.taken, "surplus": one.surplus}
        for one in found.owners
    ]
    known = found.known
    facts = {"sampling": known.sampling, "amplification": known.amplification, "bias": known.bias, "least": known.least}
    a, precision = (dict(zip(found.epsilons, each.tolist(), strict=True)) for each in delivered(found, found.coalition))
    for one in owners:
        one |= {"variance": a.get(one["name"]), "precision": precision.get(one["name"])}
    curve = [{"factor": one.factor, "equal": one.equal} | vars(one.fitness) for one in scaled(found)]
    return plain | {
        "sentence": found.sentence(),
        "owners": owners,
        "payments": found.payments,
        "deviation": found.deviation,
        "known": facts | {"source": known.source},
        "curve": curve,
        "assumptions": found.assumptions,
        "unseen": found.unseen,
        "digest": found.digest,
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _say(words: str, style: str = "") -> None:
    """Print words as they are, folded at the terminal's width between words alone: a number of thousands stays on its line."""
    lines = [fill(line, console.width, break_long_words=False, break_on_hyphens=False) for line in words.split("\n")]
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)
