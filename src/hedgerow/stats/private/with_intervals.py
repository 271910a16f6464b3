"""`intervals=True` of calls that have settings of other plans as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.errors import NotBinary, SettingsInvalid

from ..columns import schema_of
from .fit import PrivateFit
from .inference import inference
from .rows import UnitRows


def with_intervals(federation: Federation, model: str, formula: str, settings: Mapping[str, Any]) -> PrivateFit:
    """`inference` for a call that has other settings as well, which are refused: they would be of another plan.

    Raises
    ------
    SettingsInvalid (HR-511), NotBinary (HR-311)
    """
    methods = {"logistic": "majorised", "linear": "ssp"}
    settings = {name: value for name, value in settings.items() if (name, value) != ("method", methods[model])}
    lawful = ("epsilon", "delta", "noise_at", "least", "weights")
    other = {name: value for name, value in settings.items() if name not in lawful and value not in (None, (), [], "fixed")}
    if other:
        raise SettingsInvalid(
            f"intervals=True with {', '.join(f'{name}={value!r}' for name, value in other.items())}.",
            remedy="Intervals have a plan of their own, of the formula's columns: leave these settings out.",
        )
    numeric = UnitRows.of(formula, schema_of(federation), weights=settings.get("weights")).numeric
    if numeric != (model == "linear"):
        raise NotBinary(
            f"the target of {formula!r} is {'a number' if numeric else 'of two values'}, and this is {model} regression.",
            remedy="Take hr.stats.private.inference, which goes by the target.",
        )
    return inference(federation, formula, **{name: settings[name] for name in lawful if name in settings})
