"""`hedgerow privacy`: what a plan costs, which noise it needs, how long a budget lasts, which composition says what,
and what an epsilon means.

Nothing is asked and no data are read: these are the accountants of `hedgerow.privacy.accounting`, with the assumptions that
an epsilon depends on printed beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console
from rich.table import Table

from hedgerow.core.events import Charge
from hedgerow.errors import BudgetInvalid, suggestion
from hedgerow.privacy import accounting
from hedgerow.report import Curve, Fits, Grid, Report, Series, write

from .explain_epsilon import show_meaning
from .json_output import JsonOption, print_json
from .show import grid_table

console = Console()
app = typer.Typer(
    help="Epsilon of a plan, noise for a budget, rounds left, compositions compared, what an epsilon means.",
    no_args_is_help=True,
)

ACCOUNTANTS = {
    "basic": "epsilons and deltas add",
    "advanced": "Dwork, Rothblum & Vadhan 2010",
    "zcdp": "zero-concentrated, Bun & Steinke 2016",
    "moments": "Renyi orders to 33, as published before 2020",
    "rdp": "Renyi divergences, converted as in 2020",
    "pld": "privacy loss distributions",
}
_POINTS = 12
_FAR = 8.0  # a line that exceeds the lowest by more is cut off in the figure

Noise = Annotated[float, typer.Option("--noise-multiplier", "-z", help="Scale of the noise over the radius of the bound.")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The budget's epsilon.")]
Delta = Annotated[float, typer.Option("--delta", "-d", help="Well below one over the number of units.")]
Rounds = Annotated[int, typer.Option("--rounds", "-T", help="Cohorts, each asked for one noisy sum.")]
Rate = Annotated[float, typer.Option("--sampling-rate", "-q", help="Probability that a unit is in a cohort.")]
Drawn = Annotated[str, typer.Option("--sampling", help="poisson, records, fixed, given or all.")]
Law = Annotated[str, typer.Option("--law", help="gaussian or laplace.")]
Adjacent = Annotated[str, typer.Option("--adjacency", help="add-remove or replace-one.")]
By = Annotated[str, typer.Option("--accountant", help="tightest, " + ", ".join(reversed(ACCOUNTANTS)) + ".")]


@app.command("epsilon")
def show_epsilon(
    noise_multiplier: Noise,
    delta: Delta,
    rounds: Rounds = 1,
    sampling_rate: Rate = 1.0,
    sampling: Drawn = "poisson",
    law: Law = "gaussian",
    adjacency: Adjacent = "add-remove",
    as_json: JsonOption = False,
) -> None:
    """Print the epsilon of a plan by every accountant, and which of them is reported."""
    plan = _Plan(rounds, sampling_rate, sampling, law, adjacency)
    charges = plan.charges(noise_multiplier)
    reported = _epsilon(charges, delta, plan, "tightest")
    table = Table("accountant", "epsilon", "by", title=f"Epsilon at delta {delta:g}", title_justify="left")
    chosen, values = None, {}
    for name, source in ACCOUNTANTS.items():
        value = _epsilon(charges, delta, plan, name)
        values[name] = value
        chosen = name if chosen is None and value == reported and name != "moments" else chosen
        table.add_row(name, _number(value), source + ("  <- reported" if name == chosen else ""))
    if as_json:
        told = {"noise_multiplier": noise_multiplier, "delta": delta, "epsilon": reported, "accountants": values}
        print_json(told | {"reported_by": chosen, "plan": plan.told()})
        return
    console.print(Fits(table))
    console.print(f"z = {noise_multiplier:g}, {plan}", highlight=False)
    console.print(meaning(reported, delta, adjacency), highlight=False)


@app.command("noise")
def show_noise(
    epsilon: Epsilon,
    delta: Delta,
    rounds: Rounds = 1,
    sampling_rate: Rate = 1.0,
    sampling: Drawn = "poisson",
    law: Law = "gaussian",
    adjacency: Adjacent = "add-remove",
    accountant: By = "tightest",
    as_json: JsonOption = False,
) -> None:
    """Print the least noise multiplier that keeps a plan within a budget."""
    plan = _Plan(rounds, sampling_rate, sampling, law, adjacency)
    z = _safe(plan.noise(epsilon, delta, accountant))
    spent = _epsilon(plan.charges(z), delta, plan, accountant)
    if as_json:
        told = {"noise_multiplier": z, "epsilon": spent, "budget": epsilon, "delta": delta, "accountant": accountant}
        print_json(told | {"plan": plan.told()})
        return
    console.print(f"noise multiplier [bold]{z:.6g}[/bold]: {plan}", highlight=False)
    console.print(f"accountant {accountant}: epsilon {_number(spent)} of {epsilon:g} at delta {delta:g}.", highlight=False)
    console.print(meaning(spent, delta, adjacency), highlight=False)


@app.command("rounds")
def show_rounds(
    noise_multiplier: Noise,
    epsilon: Epsilon,
    delta: Delta,
    sampling_rate: Rate = 1.0,
    sampling: Drawn = "poisson",
    law: Law = "gaussian",
    adjacency: Adjacent = "add-remove",
    accountant: By = "tightest",
    spent: Annotated[int, typer.Option("--spent", help="Rounds that were asked before, under the same plan.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Print how many rounds a budget allows at this noise, and how many are left."""
    if spent < 0:
        raise BudgetInvalid(f"{spent} rounds cannot have been spent", remedy="Count from 0 on.")
    plan = _Plan(1, sampling_rate, sampling, law, adjacency)
    most = accounting.most_rounds(
        noise_multiplier, epsilon=epsilon, delta=delta, accountant=_known(accountant), **plan.how(with_rate=True)
    )
    if as_json:
        told = {"rounds": most, "left": max(0, most - spent), "noise_multiplier": noise_multiplier, "budget": epsilon}
        drawn = {key: value for key, value in plan.told().items() if key != "rounds"}
        print_json(told | {"delta": delta, "accountant": accountant, "plan": drawn})
        return
    left = f", of which {max(0, most - spent)} are left" if spent else ""
    console.print(f"[bold]{most}[/bold] rounds{left}: z = {noise_multiplier:g}, {plan.drawn}", highlight=False)
    if most:
        reached = _epsilon(Counter({plan.charge(noise_multiplier): most}), delta, plan, accountant)
        console.print(
            f"accountant {accountant}: epsilon {_number(reached)} of {epsilon:g} at delta {delta:g}.", highlight=False
        )
        console.print(meaning(reached, delta, adjacency), highlight=False)


@app.command("compare")
def show_compare(
    delta: Delta,
    noise_multiplier: Annotated[float | None, typer.Option("--noise-multiplier", "-z", help="Compare epsilons at it.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="Compare the noise that it takes.")] = None,
    rounds: Rounds = 1,
    sampling_rate: Rate = 1.0,
    sampling: Drawn = "poisson",
    law: Law = "gaussian",
    adjacency: Adjacent = "add-remove",
    out: Annotated[Path | None, typer.Option(help="Write a page with the table and a figure.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what each composition says of one plan: epsilons at a noise, or the noise that a budget takes."""
    if (noise_multiplier is None) == (epsilon is None):
        raise BudgetInvalid(
            "a comparison is of epsilons at one noise, or of noises at one epsilon: name one of the two",
            remedy="Add --noise-multiplier Z or --epsilon E, and not both.",
        )
    plan = _Plan(rounds, sampling_rate, sampling, law, adjacency)
    if noise_multiplier is not None:
        z = noise_multiplier
        charges = plan.charges(z)
        values = {name: _epsilon(charges, delta, plan, name) for name in (*ACCOUNTANTS, "tightest")}
        what, given = "epsilon", f"z = {z:g}"
    else:
        assert epsilon is not None
        values = {name: plan.noise_or_none(epsilon, delta, name) for name in ACCOUNTANTS}
        z = values["tightest"] = plan.noise(epsilon, delta, "tightest")
        what, given = "noise multiplier", f"epsilon {epsilon:g}"
    note = f"{given}, delta {delta:g}, {plan}"
    least = values["tightest"]
    ratios = [f"{value / least:.3g} x" if 0 < least <= value < math.inf else "" for value in values.values()]
    sources = [ACCOUNTANTS.get(name, "the least of them") for name in values]
    rows = tuple(zip(values, values.values(), ratios, sources, strict=True))
    grid = Grid(f"What each composition says: {what}", ("composition", what, "of the least", "source"), rows, note)
    if as_json:
        print_json({"of": what, "given": given, "delta": delta, "compositions": values, "plan": plan.told()})
    else:
        console.print(grid_table(grid))
    reached = _epsilon(plan.charges(z), delta, plan, "tightest")
    if out is not None:
        write(_page(grid, plan, z, delta, reached), out)
        Console(stderr=as_json).print(f"Page: {out}", highlight=False, soft_wrap=True)


def meaning(epsilon: float, delta: float, adjacency: str) -> str:
    """Return in one sentence what an epsilon promises."""
    if not math.isfinite(epsilon):
        return "No epsilon is claimed: something would go out without noise, or this accountant cannot price it."
    who = "whether a unit took part or not" if adjacency == "add-remove" else "which of two data a unit has"
    factor = f"{math.exp(epsilon):.4g}" if epsilon < 700 else "more than 1e304"
    return (
        f"Whoever sees the releases can change the odds of {who} by a factor of at most {factor}, except with probability "
        f"about {delta:g}."
    )


app.command("explain")(show_meaning)


class _Plan:
    """Rounds, sampling, law of noise and adjacency, checked."""

    def __init__(self, rounds: int, rate: float, sampling: str, law: str, adjacency: str) -> None:
        for word, what, known in (
            (sampling, "sampling", ("all", "poisson", "records", "fixed", "given")),
            (adjacency, "adjacency", get_args(accounting.Adjacency)),
        ):
            if word not in known:
                raise BudgetInvalid(f"no {what} is called {word!r}", remedy=suggestion(word, known))
        if rounds < 1:
            raise BudgetInvalid(f"{rounds} rounds are not a plan", remedy="Plan at least one round.")
        self.rounds, self.rate, self.law, self.adjacency = rounds, rate, law, adjacency
        self.sampling = "all" if sampling == "poisson" and rate == 1 else sampling

    def charge(self, z: float) -> Charge:
        return accounting.charge_of(z, rate=self.rate, law=self.law, sampling=self.sampling)  # type: ignore[arg-type]

    def charges(self, z: float) -> Counter[Charge]:
        return Counter({self.charge(z): self.rounds})

    def how(self, *, with_rate: bool) -> dict[str, Any]:
        rate = {"rate": self.rate} if with_rate else {}
        return {"law": self.law, "sampling": self.sampling, "adjacency": self.adjacency} | rate

    def noise(self, epsilon: float, delta: float, accountant: str) -> float:
        how = self.how(with_rate=True)
        return accounting.calibrate(epsilon, delta, rounds=self.rounds, accountant=_known(accountant), **how)

    def noise_or_none(self, epsilon: float, delta: float, accountant: str) -> float:
        try:
            return self.noise(epsilon, delta, accountant)
        except BudgetInvalid:  # by this accountant no noise is enough
            return math.inf

    def told(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "sampling_rate": self.rate, **self.how(with_rate=False)}

    @property
    def drawn(self) -> str:
        said = {
            "all": "every unit in each round, no sampling",
            "poisson": f"Poisson sampling at rate {self.rate:g}",
            "records": f"Poisson sampling of records at rate {self.rate:g}",
            "fixed": f"cohorts of fixed size, {self.rate:g} of the units"
            + ("" if self.adjacency == "replace-one" else " (no amplification, twice the distance)"),
            "given": "cohorts by a public schedule (no amplification, twice the distance)",
        }[self.sampling]
        return f"{self.law} noise, {said}, {self.adjacency} adjacency"

    def __str__(self) -> str:
        return f"{self.rounds} round{'s' * (self.rounds > 1)}, {self.drawn}"


def _page(grid: Grid, plan: _Plan, z: float, delta: float, reached: float) -> Report:
    """Return a page with the table, and with the epsilons of the plan as its rounds go by."""
    steps = sorted({max(1, round(plan.rounds * k / _POINTS)) for k in range(1, _POINTS + 1)})
    lines = {name: [_epsilon(Counter({plan.charge(z): n}), delta, plan, name) for n in steps] for name in ACCOUNTANTS}
    top = _FAR * max(reached, 1e-9)
    series = tuple(
        Series(
            name,
            tuple(map(float, steps)),
            tuple(y if y <= top else math.nan for y in ys),
            "main" if name == "pld" else "reference",
        )
        for name, ys in lines.items()
        if any(y <= top for y in ys)
    )
    note = f"All at z = {z:.6g} and delta {delta:g}. A line ends where it exceeds {_FAR:g} times the least epsilon at the end."
    return Report(
        title="Compositions compared",
        study="privacy compare",
        description=f"{plan}.",
        privacy=f"A plan, not a release: epsilon {reached:.4g} at delta {delta:g} if it is carried out.",
        privacy_ok=math.isfinite(reached),
        curves=(Curve("Epsilon as rounds go by", "rounds", "epsilon", series, note=note),),
        tables=(grid,),
    )


def _epsilon(charges: Counter[Charge], delta: float, plan: _Plan, accountant: str) -> float:
    return accounting.epsilon(charges, delta=delta, adjacency=plan.adjacency, accountant=_known(accountant))  # type: ignore[arg-type]


def _known(accountant: str) -> Any:
    if accountant not in get_args(accounting.Accountant):
        raise BudgetInvalid(
            f"no accountant is called {accountant!r}", remedy=suggestion(accountant, get_args(accounting.Accountant))
        )
    return accountant


def _safe(z: float) -> float:
    """Return a multiplier of six digits that is not smaller."""
    unit = 10.0 ** (math.floor(math.log10(z)) - 5)
    return math.ceil(z / unit) * unit


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "infinite"
