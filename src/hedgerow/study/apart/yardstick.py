"""The yardstick of a simulation: the same fit with all columns in one place, which only a simulation can make."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hedgerow.data import in_order
from hedgerow.engines import simulate
from hedgerow.errors import HedgerowError
from hedgerow.store import last

from ..catalogue import PROGRAMS
from ..keys import keys_of, settings_of
from ..quiet import quiet

if TYPE_CHECKING:
    import pandas

    from .ready import BuiltApart

PREFIX = "vertical_"
"""Programs of this beginning do what those without it do of one table."""
TITLE = "Beside the fit of all columns in one place"


def beside_pooled(built: BuiltApart, coefficients: pandas.DataFrame | None) -> pandas.DataFrame | None:
    """Coefficients and standard errors of a run beside those of the pooled fit, with differences; None where there is none.

    Differences are relative to the pooled standard error where there is one: 1e-6 is a millionth of it.
    """
    name = built.study.program.name.removeprefix(PREFIX)
    if coefficients is not None and built.simulated and {"of", "by"} <= built.settings.keys():
        return _means_beside(built, coefficients)
    if coefficients is None or name == built.study.program.name or name not in PROGRAMS or not built.simulated:
        return None
    listed = PROGRAMS[name]
    given = {key: value for key, value in built.settings.items() if key in keys_of(listed).model_fields}
    with suppress(HedgerowError), quiet():
        settings = settings_of(listed, given)
        federation = simulate(built.pooled(), in_order(parties=1), disclosure=float("inf"))
        outcome: Any = listed.outcome(federation, settings, last(listed.program(settings)(federation)))  # type: ignore[misc]
        return _beside(coefficients, outcome.coefficients)
    return None


def _means_beside(built: BuiltApart, found: pandas.DataFrame) -> pandas.DataFrame:
    """Means by group beside those of all columns in one place, and their differences."""
    of, by = built.settings["of"], built.settings["by"]
    table = built.pooled().to_pandas()
    column = built.pooled().schema[by]
    groups = table[by].astype(str) if column.levels else table[by].astype(int)
    pooled = table.groupby(groups)[list(of)].mean()
    pooled.index = pooled.index.map(str)
    made = found[list(of)].set_axis(found.index.map(str), axis="index").add_prefix("mean of ")
    for name in of:
        made[f"pooled mean of {name}"] = pooled[name].reindex(made.index)
        made[f"difference of {name}"] = made[f"mean of {name}"] - made[f"pooled mean of {name}"]
    return made.rename_axis(by)


def _beside(apart: pandas.DataFrame, pooled: pandas.DataFrame | None) -> pandas.DataFrame | None:
    import pandas

    if pooled is None or "coef" not in apart or set(apart.index) != set(pooled.index):
        return None
    pooled = pooled.loc[apart.index]
    found = {"coef": apart["coef"], "pooled coef": pooled["coef"], "difference": apart["coef"] - pooled["coef"]}
    if "se" in apart and "se" in pooled:
        found["difference"] = found["difference"] / pooled["se"]
        found |= {"se": apart["se"], "pooled se": pooled["se"], "relative difference of se": apart["se"] / pooled["se"] - 1}
        found = {"difference in se" if name == "difference" else name: values for name, values in found.items()}
    return pandas.DataFrame(found)


def largest(beside: pandas.DataFrame) -> dict[str, float]:
    """The largest differences from the pooled fit, as metrics."""
    columns = {"difference in se": "largest difference from pooled, in se", "difference": "largest difference from pooled"}
    columns |= {"relative difference of se": "largest relative difference of se"}
    columns |= {name: f"largest {name}" for name in map(str, beside) if name.startswith("difference of ")}
    return {words: float(beside[name].abs().max()) for name, words in columns.items() if name in beside}
