"""What federated training algorithms share: settings checked before anybody is asked, cohorts, the mean of updates."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation
from hedgerow.core.party import Local, Party
from hedgerow.data import Table, complete_cases
from hedgerow.data.cases import whole_cases
from hedgerow.data.split_column import warn_of_split
from hedgerow.errors import SettingsInvalid

from .descent import Solver
from .descent.adversary import Adversary
from .descent.eager import mean_loss, slope_of
from .descent.optimisers import settled
from .devices import device
from .fixed import weights_of
from .models import Model, Weights, model_for, model_for_task
from .reading import Reading
from .robust.asking import RuleInUse, held, lawful_clip, row_of_root
from .robust.groups import Groups
from .robust.named import RuleSetting
from .robust.rule import Beside
from .scale import Scale, scale_for, warn_unscaled
from .schedule import Schedule
from .settings import Settings, Weighting, fields, filled
from .tasks.declared import task_from
from .tensors import blank, columns_of, made_of, prepared
from .tokens import warn_of_tokens

log = logging.getLogger("hedgerow.learn")


@dataclass(frozen=True)
class Training:
    """A federation, a model and a solver that fit each other, for a number of rounds.

    Attributes
    ----------
    federation : Federation
        With `model_input` and `model_target` prepared at each party.
    weighting : {"records", "uniform", "expected"}
        How parties count; "expected" divides by the expected size of the cohort, and sends no weight.
    rule : RuleInUse
        What is taken of the parties' contributions; the mean by default.
    """

    federation: Federation
    model: Model
    solver: Solver
    rounds: int
    weighting: Weighting = "records"
    largest_weight: float | None = None
    schedule: Schedule = field(default_factory=Schedule)
    rate: float | None = None
    size: int | None = None
    spare: int = 0
    every: int | None = None
    rule: RuleInUse = field(default_factory=RuleInUse)

    @classmethod
    def of(
        cls,
        federation: Federation,
        module: nn.Module,
        rounds: int,
        settings: Settings | Mapping[str, Any],
        *,
        lawful: Sequence[Weighting] = ("records", "uniform", "expected"),
        rule: RuleSetting = "mean",
        expect: float | None = None,
    ) -> Training:
        """Check everything before any party is asked.

        Parameters
        ----------
        lawful : sequence of str
            Ways of weighting that the algorithm allows, the one it prefers first.
        rule, expect
            What is taken of the parties' contributions, and how many parties may lie; see `hedgerow.learn.fedavg`.

        Raises
        ------
        ModelInvalid (HR-510), SettingsInvalid (HR-511)
        """
        given = filled(settings)
        solver, schedule = solver_of(given, federation), Schedule(given["schedule"], given["decay"], given["period"], rounds)
        problems = solver.problems() + schedule.problems() + ([] if rounds >= 1 else [f"rounds is {rounds}"])
        if given["spare"] < 0 or (given["spare"] and given["size"] is None):
            problems.append(f"spare is {given['spare']} and size is {given['size']}")
        if given["largest_weight"] is not None and not given["largest_weight"] > 0:
            problems.append(f"largest_weight is {given['largest_weight']}")
        if problems:
            raise SettingsInvalid("; ".join(problems) + ".", remedy="Counts are at least one, rates are above zero.")
        if solver.by_torch and solver.path not in ("auto", "eager"):
            log.warning("path is %r, and %s of torch.optim trains eagerly", solver.path, solver.rule)
        device()  # one that is not there is refused before any party is asked, where parties are in this process
        in_use = rule_of(rule, expect, federation, given)
        if in_use.of_rows:
            lawful = [one for one in lawful if one != "records"]
        weighting = weighting_of(given["weighting"], federation, lawful)
        features, held_out = given["features"], given["held_out"]
        chosen = features or [name for name in federation.schema.features if name != held_out]
        scale = how_read(module, federation, chosen, given["scale"], given["task"])
        if given["adversarial"] is not None:
            reading = scale if isinstance(scale, Reading) else Reading.of(federation.schema, chosen, scale)
            solver = replace(solver, adversary=Adversary.of(given["adversarial"], reading, federation.schema))
        complete_cases(federation, columns_of(federation.schema, features, held_out, scale), count="records" in lawful)
        ready = prepared(federation, features, held_out=held_out, scale=scale)
        model = model_of(module, federation, chosen, given["batch_size"] or 256, scale=scale)
        warn_unscaled(federation.schema, *names_and_scale(scale, chosen))
        warn_of_tokens(model, federation.schema)
        warn_of_parties(federation, features, scale, chosen)
        if (records := in_use.rule.root_records) is not None:
            in_use = replace(in_use, root=root_party(records, federation, features, held_out, scale))
        who = {name: given[name] for name in ("rate", "size", "spare", "every")}
        return cls(ready, model, solver, rounds, weighting, given["largest_weight"], schedule, **who, rule=in_use)

    def cohort(self) -> Federation:
        """The parties of the next round: everybody, a sample by `rate` or `size`, or those whose turn it is."""
        if self.rate is self.size is self.every is None:
            return self.federation
        return self.federation.sample(rate=self.rate, size=self.size, spare=self.spare, every=self.every)

    def ask(self, local: Local, t: int, **settings: Any) -> Local:
        """A local function with this training's model, weighting, and solver as it is in round t."""
        common = {"model": self.model, "weighting": self.weighting, "largest_weight": self.largest_weight}
        return partial(local, solver=self.solver_in(t), **common, **settings)

    def combined(
        self, local: Local, t: int, broadcast: Any, kept: Weights, **settings: Any
    ) -> tuple[Mapping[str, np.ndarray], Weights]:
        """Ask round t's cohort, and combine what parties contribute: their mean, or what the rule takes of their rows.

        Parameters
        ----------
        kept : dict of arrays
            What the rule kept of the rounds before.

        Returns
        -------
        mapping from key to array
            As `local` contributes, per party and without a weight.
        dict of arrays
            What the rule keeps for the next round; of the mean nothing.
        """
        if not self.rule.of_rows:
            cohort = self.cohort()
            total = cohort.sum(self.ask(local, t, **settings), broadcast)
            return {key: mean_of(total, cohort, key) for key in total if key != "n"}, kept
        one = replace(self, weighting="expected").ask(
            local, t, **settings
        )  # a row is what one party would add, without a weight
        if isinstance(self.rule.rule, Groups):
            rows = self._means_of_groups(self.rule.rule, local, t, broadcast, settings)
            asked = self.federation.size
        else:
            cohort = self.cohort()
            rows, asked = held(cohort.gather(one, broadcast), self.federation), len(cohort.members)
            if not asked:  # a Poisson sample may be empty; the mean does not move then either
                return no_change(broadcast), kept
        root = self.rule.root
        stream = self.federation.stream(t, "root records").generator
        own = None if root is None else row_of_root(one, broadcast, root, stream)
        rng = self.federation.stream(t, "rule of rows").generator
        beside = Beside(tuple(rows), self.federation.names, kept, own, rng)
        return self.rule.combine(rows, asked, beside)

    def _means_of_groups(
        self, rule: Groups, local: Local, t: int, broadcast: Any, settings: Mapping[str, Any]
    ) -> dict[str, dict[str, np.ndarray]]:
        """Each group's mean by key. Groups without parties are asked, since not to ask would tell that they are empty."""
        ask, found = self.ask(local, t, **settings), {}
        groups = self.federation.split(rule.groups, balanced=rule.splits_evenly(self.federation.protection))
        for k, group in enumerate(groups):
            if len(group.members) or self.federation.protection.noisy:
                total = group.sum(ask, broadcast)
                if len(group.members):
                    found[f"group {k}"] = {key: mean_of(total, group, key) for key in total if key != "n"}
        return found

    def solver_in(self, t: int) -> Solver:
        """The solver of round t, counted from zero."""
        return replace(self.solver, learning_rate=self.solver.learning_rate * self.schedule.factor(t))

    def left(self, start: Any) -> range:
        """Rounds still to go after a state, or all."""
        return range(start.round if start else 0, self.rounds)

    def kept(self, start: Any) -> Weights:
        """What the rule of a state keeps, or nothing."""
        return {} if start is None else dict(start.rule_state)

    def begin(self, start: Any) -> np.ndarray:
        """Weights to begin with: those of a state, or the module's own; shape (d,)."""
        return self.model.initial if start is None else self.model.flat(start.weights)


def solver_of(given: Mapping[str, Any], federation: Federation) -> Solver:
    """The local solver that settings describe."""
    epochs = given["epochs"]
    if not isinstance(epochs, int):
        names = federation.names
        if len(epochs) != len(names):
            raise SettingsInvalid(
                f"epochs has {len(epochs)} numbers for {len(names)} parties.", remedy="Give one for each party, in their order."
            )
        epochs = dict(zip(names, epochs, strict=True))
    names = ("learning_rate", "steps", "momentum", "second_decay", "epsilon", "stragglers", "precision", "path")
    same = {name: given[name] for name in names}
    same |= {"rule": given["solver"], "rule_settings": settled(given["solver_settings"] or {})}
    return Solver(epochs=epochs, batch_size=given["batch_size"] or None, **same)


def weighting_of(wanted: Weighting | None, federation: Federation, lawful: Sequence[Weighting]) -> Weighting:
    """How parties count: as asked, else as the algorithm prefers and the channel allows."""
    clip, bare = federation.protection.clip, federation.protection.exact
    weighed = bare or (isinstance(clip, Mapping) and "n" in clip)
    weighting = wanted or (lawful[0] if weighed or "expected" not in lawful else "expected")
    if weighting not in lawful:
        raise SettingsInvalid(f"weighting is {weighting!r}.", remedy=f"This algorithm counts parties by {' or '.join(lawful)}.")
    if isinstance(clip, Bound) and weighting != "expected":
        raise SettingsInvalid(
            f"weighting by {weighting} sends an update and its weight, and one clip cannot fit both.",
            remedy="Clip each key: protect(clip={'update': l2(1.0), 'n': linf(500)}), or leave weighting out.",
        )
    return weighting


def rule_of(rule: RuleSetting, expect: float | None, federation: Federation, given: Mapping[str, Any]) -> RuleInUse:
    """A rule that fits a federation and the settings of a training; every refusal comes before any party is asked."""
    rate, size, every, n = given["rate"], given["size"], given["every"], federation.size
    cohort = size if size is not None else n * rate if rate is not None else n // every if every is not None else n
    found = RuleInUse.checked(rule, expect, federation, cohort, sampled=not rate is size is every is None)
    if not found.of_rows:
        return found
    if given["weighting"] == "records":
        raise SettingsInvalid(
            f"weighting is 'records', and the rule {found.rule.name} counts parties alike: one that lies could lie about its "
            "records as well.",
            remedy="Leave weighting out.",
        )
    lawful_clip(federation.protection.clip)
    return found


def root_party(
    table: Any, federation: Federation, features: Sequence[str] | None, held_out: str | None, scale: Scale | Reading
) -> Party:
    """The server's root records as parties prepare theirs."""
    if not isinstance(table, Table):
        raise SettingsInvalid(
            f"FLTrust's root is {table!r}, and the server has no records of which to take them.",
            remedy="Give a table: FLTrust(root=table). In a study give the server one: evaluation.holdout = 0.2.",
        )
    schema = federation.schema
    whole = whole_cases(table, columns_of(schema, features, held_out, scale))
    chosen = features or [name for name in schema.features if name != held_out]
    w = np.ones(len(whole)) if schema.weight is None else whole[schema.weight]
    return Party("server", made_of(whole.columns, schema, chosen, scale), w)


def how_read(
    module: nn.Module, federation: Federation, features: Sequence[str] | None, scale: Scale, task: Any
) -> Scale | Reading:
    """How features reach a module: by a scale, or by a task (or a study's table of one)."""
    wanted, made = scale_for(module, scale), task_from(task)
    return wanted if made is None else Reading.of(federation.schema, features, wanted, made)


def names_and_scale(scale: Scale | Reading, features: Sequence[str]) -> tuple[Sequence[str], Scale]:
    """Features that reach a module as numbers, and their scale."""
    return (scale.unscaled, scale.scale) if isinstance(scale, Reading) else (features, scale)


def warn_of_parties(
    federation: Federation, features: Sequence[str] | None, scale: Scale | Reading, chosen: Sequence[str]
) -> None:
    """Warn where a module reads the column that splits parties, and nobody named what it reads."""
    task = scale.task if isinstance(scale, Reading) else None
    if features is None and (task is None or task.task.inputs is None):
        warn_of_split(federation, chosen)


def model_of(
    module: nn.Module,
    federation: Federation,
    features: Sequence[str] | None,
    batch_size: int = 1,
    *,
    whole: bool = False,
    scale: Scale | Reading = "ranges",
) -> Model:
    """Pair a module with the federation's schema, and find out what an engine may do with it; see `Model`."""
    reading = scale if isinstance(scale, Reading) else Reading.of(federation.schema, features, scale)
    if reading.task is None:
        made_up = blank(federation.schema, features, reading)
        model = model_for(module, federation.schema, made_up["model_input"], low=reading.low, scale=reading.by, whole=whole)
    else:
        model = model_for_task(module, reading, whole=whole)
        made_up = dict(zip(("model_input", "model_target"), (value.numpy() for value in reading.task.made_up(2)), strict=True))
    stackable = not model.large(batch_size) and can_be_stacked(model, made_up)
    return replace(model, stackable=stackable, wide=model.large(batch_size), reading=reading)


def equal_parties(settings: Mapping[str, Any], *fixed: str) -> tuple[Weighting, ...]:
    """Ways of weighting of an algorithm in which parties count equally; refuse settings that it fixes, such as its solver."""
    for name in fixed:
        if settings.get(name, fields()[name].default) != fields()[name].default:
            raise SettingsInvalid(
                f"{name} is {settings[name]!r}.", remedy=f"This algorithm is defined for {name} = {fields()[name].default!r}."
            )
    return ("uniform", "expected")


def at_least(least: float, **settings: float) -> None:
    """Refuse settings below a value, or not finite."""
    if wrong := [f"{name} is {value}" for name, value in settings.items() if not (np.isfinite(value) and value >= least)]:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy=f"It is a number of at least {least:g}.")


def above(limit: float, **settings: float) -> None:
    """Refuse settings that are not above a value, or not finite."""
    if wrong := [f"{name} is {value}" for name, value in settings.items() if not (np.isfinite(value) and value > limit)]:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy=f"It is a number above {limit:g}.")


def can_be_stacked(model: Model, made_up: Mapping[str, np.ndarray]) -> bool:
    """Whether many parties' copies of a module can be trained in one call: known of linear layers, tried with others."""
    if model.stochastic:
        return False
    if model.stack is not None:
        return True
    x, target = (torch.from_numpy(made_up[name])[None] for name in ("model_input", "model_target"))
    weights = torch.from_numpy(model.initial)[None]
    try:
        found = slope_of(mean_loss, weights, x, target, torch.ones(1, 2), model=model)
        if model.task is not None:  # stacked, functions of one's own must do what they do alone, also for filled-up records
            wanted = slope_of(mean_loss, weights[0], x[0], target[0], torch.ones(2), model=model)
            empty = slope_of(mean_loss, weights[0], 0 * x[0], 0 * target[0], torch.zeros(2), model=model)
            if not torch.allclose(found[0], wanted, rtol=1e-3, atol=1e-6) or not torch.isfinite(empty).all():
                raise NotImplementedError("stacked it gives other gradients")
    except (RuntimeError, ValueError, NotImplementedError, TypeError, IndexError) as error:
        log.info("%s cannot be stacked (%s): parties train one by one", type(model.module).__name__, str(error).split("\n")[0])
        return False
    return True


def mean_of(total: Mapping[str, np.ndarray], cohort: Federation, key: str = "update") -> np.ndarray:
    """Divide a total by the total weight, or by the cohort's expected size where no weight was sent."""
    weight = max(float(total["n"]), 1e-12) if "n" in total else cohort.expected_size
    return (total[key] / weight).astype(np.float32)


def no_change(broadcast: Any) -> dict[str, np.ndarray]:
    """Zeros for each thing that a round changes: the weights, as "update", and what else was broadcast, by its own key."""
    sent = broadcast if isinstance(broadcast, Mapping) else {"w": broadcast}
    return {"update" if key == "w" else key: np.zeros_like(value) for key, value in sent.items()}


def with_weights(module: nn.Module, state: Any) -> nn.Module:
    """Return a copy of a module with the weights of a state (`.weights`) or of a mapping from name to array.

    The copy expects its features as training scaled and ordered them: applied to raw columns it answers wrongly without an
    error. `predict` brings the records of a table or a data frame to it.
    """
    filled = copy.deepcopy(module)
    filled.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights_of(state).items()}, strict=False)
    return filled
