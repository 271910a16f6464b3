"""How the sites of a meta-analysis are asked: which rows are prepared, of which coefficients, within which range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from ..columns import schema_of
from ..design import Design, design_of
from ..factors import INTERCEPT
from ..linear.asking import ask_for
from ..survival.asking import ask_for_rows
from ..survival.design import SurvivalDesign, read_survival
from .asking import AskedSites, most_records, refuse_noise
from .effect import Between
from .site_sums import Within

MODELS = ("binomial", "gaussian", "poisson", "cox")


@dataclass(frozen=True)
class AskedMeta:
    """A meta-analysis as its sums are asked for.

    Attributes
    ----------
    sites : AskedSites
    names : tuple of str
        Of the coefficients that are put together.
    coefficients : tuple of int
        Their places among those of a site's model.
    settings : dict
        Of every local function.
    within : Within or None
        Where estimates lie, where rows are hidden.
    """

    sites: AskedSites
    names: tuple[str, ...]
    coefficients: tuple[int, ...]
    settings: dict[str, Any]
    within: Within | None


def between_of(federation: Federation, between: Between | None) -> Between:
    """How the variance between sites is estimated: where rows are hidden by few totals, unless somebody says otherwise."""
    return between or ("dl" if federation.protection.hides_rows else "reml")


def model_of(federation: Federation, given: Mapping[str, Any]) -> Design | SurvivalDesign:
    """The design of a site's own model; nobody is asked.

    Raises
    ------
    FormulaInvalid (HR-310), SettingsInvalid (HR-511)
    """
    family, schema = given.get("family", "binomial"), schema_of(federation)
    if family not in MODELS:
        raise SettingsInvalid(f"family={family!r} of a site's model.", remedy=f"One of {', '.join(MODELS)}.")
    if family != "cox":
        aside = [key for key in ("time", "event") if given.get(key)]
        if aside:
            raise SettingsInvalid(f"{' and '.join(aside)} of family={family!r}.", remedy='They are for family="cox".')
        return design_of(schema, given["formula"], family, offset=given.get("offset"))
    spec = read_survival(schema, given["formula"], **{key: given.get(key) for key in ("time", "event", "offset")})
    if spec.cluster:
        raise SettingsInvalid("a meta-analysis has no clusters.", remedy="Leave out cluster(...): errors are the model's.")
    return spec


def names_of_model(
    federation: Federation, given: Mapping[str, Any], coefficients: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and places of the coefficients that are put together.

    Raises
    ------
    SettingsInvalid (HR-511)
        A name is none of the model's.
    """
    every = model_of(federation, given).names
    wanted = [coefficients] if isinstance(coefficients, str) else coefficients
    names = tuple(name for name in every if name != INTERCEPT) if wanted is None else tuple(wanted)
    unknown = [name for name in names if name not in every]
    if unknown or not names:
        raise SettingsInvalid(
            f"coefficients={list(names)}: {unknown[0]!r} is none of the model's." if unknown else "no coefficient to combine.",
            remedy=f"Some of {', '.join(every)}.",
        )
    return names, tuple(every.index(name) for name in names)


def ask_for_sites(
    federation: Federation, given: Mapping[str, Any], coefficients: Sequence[str] | None, least: float
) -> AskedMeta:
    """Prepare the rows of a site's own model, of the records that lack none of its columns.

    Raises
    ------
    UnlawfulChannel (HR-211), UnboundedSum (HR-210), SettingsInvalid (HR-511), FormulaInvalid (HR-310)
    """
    refuse_noise(federation, "a meta-analysis")
    spec, family = model_of(federation, given), given.get("family", "binomial")
    names, places = names_of_model(federation, given, coefficients)
    most, declared = most_records(federation, given.get("most")), given.get("most") is not None
    settings: dict[str, Any] = {"model": family, "d": len(spec.names), "least": float(least)}
    if isinstance(spec, SurvivalDesign):
        found = ask_for_rows(federation, spec)
        asked, target = found.asked, (0.0, 1.0)
        settings |= {"ties": given.get("ties", "efron"), "columns": found.spec.columns}
    else:
        asked = ask_for(federation, spec)
        target = asked.spec.response_range or (0.0, 1.0)
    sites = AskedSites(asked, most, declared)
    within = Within.of(family, most, target) if sites.bounded else None
    settings |= {"ends": (within.least, within.farthest)} if within else {}
    return AskedMeta(sites, names, places, settings | sites.settings, within)


def units_of(federation: Federation, given: Mapping[str, Any], places: Sequence[int]) -> Array:
    """By which estimates as asked are divided, shape (p,); nobody is asked."""
    spec = model_of(federation, given)
    rows = spec.rows if isinstance(spec, SurvivalDesign) else spec
    scales = np.array(rows.to_unit().scales or np.ones(rows.size)) if federation.protection.hides_rows else np.ones(rows.size)
    return scales[list(places)]
