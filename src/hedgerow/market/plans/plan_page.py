"""A plan on one page: one sentence, the owners' table, what more or less openness would give, what was assumed."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_UP
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from hedgerow.report import Curve, Fits, Grid, Series
from hedgerow.report.markup import Html, tag
from hedgerow.report.model import Cell
from hedgerow.report.numerals import show
from hedgerow.report.page import curve_figure, document, pairs_list, text_block, write_text
from hedgerow.report.tables import table

from .owners_plan import OwnersPlan, PlannedOwner, digits, money
from .payment_terms import payments_grid
from .plan import GAIN, rounded, scaled

MOST_ROWS = 60
"""Owners in the table; of more, those that matter most, and the others folded away."""

STYLE = """
.verdict { font-size: clamp(1.45rem, 3.6vw, 2rem); line-height: 1.25; margin-top: 1.6rem; max-width: 46rem; text-wrap: pretty; }
.verdict + .lead { font-size: 1.0625rem; }
.owners td, .owners th { padding-right: 1.1rem; }
"""


def write_plan(plan: OwnersPlan, path: str | Path, text: str = "") -> None:
    """Write a plan's page.

    Parameters
    ----------
    text : str
        Sections for the study file, which are shown at the end.

    Raises
    ------
    CannotWrite (HR-104)
        The disk is full, a permission is missing, or `path` is a folder.
    """
    write_text(plan_page(plan, text), path)


def plan_page(plan: OwnersPlan, text: str = "") -> str:
    """A plan's page, which loads nothing and needs no script."""
    title = plan.title or "Plan"
    header = tag(
        "header",
        tag("p", tag("span", "Hedgerow", class_="brand"), " plan", class_="kicker"),
        tag("h1", title),
        tag("p", plan.sentence(), class_="verdict"),
        tag("p", beside(plan), class_="lead"),
    )
    main = tag(
        "main",
        tag("section", tag("h2", "At a glance"), pairs_list(facts(plan), "facts"), class_="glance"),
        _owners(plan),
        _section("How payments follow", table(payments_grid(plan, shown(plan)))) if plan.price is not None else None,
        tag("section", tag("h2", "If all were more, or less, open"), tag("div", curve_figure(curve(plan)), class_="curves")),
        _section("What else could be done", table(alternatives(plan))),
        _section("What was assumed", _listed(plan.assumptions)),
        tag("section", tag("h2", "What is not seen"), _listed(plan.unseen), class_="warnings"),
        _section("For the study file", text_block(text)) if text else None,
        _section("How it was made", tag("p", provenance(plan), class_="note")),
    )
    return document(title, header, main, STYLE)


def shown(plan: OwnersPlan) -> tuple[PlannedOwner, ...]:
    """The owners that take part, in the order of the file; of very many, those without which most is lost."""
    part = plan.coalition
    return part if len(part) <= MOST_ROWS else tuple(sorted(part, key=lambda one: -one.without)[:MOST_ROWS])


def owners_grid(plan: OwnersPlan, title: str = "Owners", *, shared: bool = False) -> Grid:
    """The owners that are shown; with `shared` without what a payment leaves after an owner's cost, which tells that cost."""
    part, costs = shown(plan), not shared
    heads = ["owner", "records", "epsilon"] + ["budget"] * bool(plan.spent) + ["weight"]
    heads += (["payment"] + ["after cost"] * costs) * (plan.price is not None) + ["lost without", "advantage"]
    rows: list[tuple[Cell, ...]] = []
    for one in part:
        cells: list[Cell] = [one.name, one.records, _exact(one.epsilon)]
        cells += [_exact(one.budget)] * bool(plan.spent) + [f"{one.weight:.4g}"]
        if one.payment is not None and one.surplus is not None:
            cells += [money(one.payment)] + [money(one.surplus)] * costs
        rows.append((*cells, digits(one.without), f"{one.advantage:.2f}"))
    return Grid(title, tuple(heads), tuple(rows))


def fitting(grid: Grid) -> Fits:
    """A table of text for a terminal of any width, numbers to the right."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for place, name in enumerate(grid.columns):
        made.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in grid.rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return Fits(made)


def alternatives(plan: OwnersPlan) -> Grid:
    """Relative fitness of what else could be done with the same owners."""
    n, few = len(plan.owners), len(plan.prefix)
    everybody = "everybody" if len(plan.coalition) == n else "everybody, those left out at their highest epsilon"
    whom = ", ".join(plan.prefix[:6]) + f" and {few - 6} more" * (few > 6)
    rows = (
        ("this plan", digits(plan.fitness.expected)),
        (f"{everybody}, with the best weights", digits(plan.weighted)),
        (f"{everybody}, with equal weights", digits(plan.equal)),
        (f"the best owners of equal weight: {whom}", digits(plan.prefix_fitness)),
    )
    return Grid("Alternatives", ("", "relative fitness"), rows)


def curve(plan: OwnersPlan) -> Curve:
    """The forecast over a factor on all epsilons."""
    found = scaled(plan)
    x = tuple(one.factor for one in found)
    best = Series(
        "best weights",
        x,
        tuple(one.fitness.expected for one in found),
        low=tuple(one.fitness.low for one in found),
        high=tuple(one.fitness.high for one in found),
    )
    same = Series("equal weights, the same owners", x, tuple(one.equal for one in found), "reference")
    note = "1 is the plan, and 90 of 100 runs end in the band. Epsilons of all that take part are multiplied, beyond offers."
    return Curve("Relative fitness", "all epsilons multiplied by", "relative fitness", (best, same), note=note, log="xy")


def facts(plan: OwnersPlan) -> tuple[tuple[str, str | int], ...]:
    """What was agreed, and what the learner pays."""
    n, values = plan.noise, sorted(plan.epsilons.values())
    found: list[tuple[str, str | int]] = [("questions", n.horizon), ("noise", f"{n.law}, at the owners")]
    found += [("delta", f"{n.delta:g}")] * (n.law == "gaussian")
    found += [("epsilons", f"{values[0]:g} to {values[-1]:g}" if values[0] < values[-1] else f"{values[0]:g}")]
    found += [("neighbours", n.neighbours), ("records that count", sum(one.records for one in plan.coalition))]
    if plan.price is not None and plan.payments is not None and plan.value is not None:
        found += [("price of precision", _exact(plan.price)), ("payments", money(plan.payments))]
        found += [("worth of a unit of fitness", money(plan.value))]
    return tuple(found)


def beside(plan: OwnersPlan) -> str:
    """What relative fitness is, and where it comes from."""
    f = plan.fitness
    return (
        f"Relative fitness is the loss above the best possible one, as a part of it: {digits(f.noise)} of it is owners' noise, "
        f"{digits(f.steps)} is left by {plan.noise.horizon} steps, and {digits(f.sample)} is that records are a sample."
        + (f" {advice(plan)}" if advice(plan) else "")
    )


def advice(plan: OwnersPlan) -> str:
    """What would help more than epsilon, where steps leave most of the loss."""
    f = plan.fitness
    if f.steps <= f.expected / 2:
        return ""
    return "Most of it is left by the steps: more rounds, or another step, would help more than more epsilon."


ADVANTAGE = (
    "Advantage: how often, at most, anybody calls a record that took part one that did, less how often one that did not. "
    "0.20 is 60 right guesses of 100, where a coin has 50."
)


def incentive(plan: OwnersPlan) -> str:
    """Why an owner answers as planned."""
    if plan.price is None or plan.deviation is None:
        return ""
    factors = f"s = {plan.known.sampling:.5g} and A = {plan.known.amplification:.5g}"
    return (
        f"The learner pays {_exact(plan.price)} for a unit of precision, n² / (s n + A a), with {factors}. An owner's "
        f"best answer depends on the price and on no other owner; by another epsilon, or none, nobody gains more "
        f"than {_most_gained(plan.deviation)}."
    )


def _most_gained(deviation: float) -> str:
    """A bound that holds, rather than the noise of rounding."""
    return f"{GAIN:f}" if deviation <= GAIN else show(deviation)


def left_out(plan: OwnersPlan, most: int = 6, *, shared: bool = False) -> str:
    """Who does not take part, and from which price on each would; of many, those who would be the first.

    With `shared` names alone, since the price from which an owner would take part tells its cost.
    """
    out = [one for one in plan.owners if not one.taken]
    if not out:
        return "Nobody is left out."
    if len(out) > most:
        out.sort(key=lambda one: one.entry or 0.0)
    told = [
        one.name + ("" if one.entry is None or shared else f" (from a price of {_exact(rounded(one.entry, 3, ROUND_UP))} on)")
        for one in out[:most]
    ]
    some = f"Left out: {', '.join(told)}" + (f" and {len(out) - most:,} more" if len(out) > most else "") + "."
    if not plan.spent:
        return some
    before = f"{some} They answered the private question before the plan, at epsilon {_exact(plan.spent)} each"
    if plan.price is None:
        return f"{before}."
    if shared:
        return f"{before}, for which they are paid {money(sum(one.payment or 0.0 for one in out))} in all."
    each = ", ".join(f"{one.name} {money(one.payment or 0.0)}" for one in out[:most])
    return f"{before}, for which they are paid {money(sum(one.payment or 0.0 for one in out))} in all: {each}" + (
        " and so on." if len(out) > most else "."
    )


def provenance(plan: OwnersPlan) -> str:
    """Where the numbers are from."""
    of = f", digest {plan.digest} of owners, study and what was known" if plan.digest else ""
    return (
        f"Made on {datetime.now(UTC):%Y-%m-%d} (UTC), before the first question{of}; the loss is known by {plan.known.source}. "
        f"Nothing was asked of an owner for it" + (f" but one question of epsilon {plan.spent:g}." if plan.spent else ".")
    )


def _owners(plan: OwnersPlan) -> Html:
    grid, part = owners_grid(plan, shared=True), len(plan.coalition)
    more = f"The {len(grid.rows)} of {part} owners without which most is lost." if len(grid.rows) < part else None
    notes = [
        tag("p", words, class_="note") for words in (more, left_out(plan, shared=True), ADVANTAGE, incentive(plan)) if words
    ]
    return tag("section", tag("h2", "Owners"), tag("div", table(grid), class_="owners"), *notes)


def _section(heading: str, *children: Html | None) -> Html:
    return tag("section", tag("h2", heading), *children)


def _listed(sentences: tuple[str, ...]) -> Html:
    return tag("ul", *(tag("li", sentence) for sentence in sentences))


def _exact(value: float) -> str:
    """All digits of a number."""
    return repr(value).removesuffix(".0")
