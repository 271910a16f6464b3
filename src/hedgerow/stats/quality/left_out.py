"""Leave one site out: each site is judged by the model that all others have fitted, which is how a new site would fare.

    for each site k:
        model k      <- logistic regression of all sites but k                          sums over the others
    models           -> every party                                                     broadcast, once for each question
    counts, sums     <- each party about the model that it did not help to fit          sum over all parties

So the judgement is a total in which no site is seen, and rows may be hidden. With `sites` each tells its own area and slope.

Releases : what a logistic regression releases, k times, each time of all parties but one; then what `prediction_quality`
           releases, once. Two of the k fits are of the same parties but two, so that together they tell more of one site than a
           single fit does: of its coefficients, not of its records.
Unit     : record, for the judgement.
Source   : Steyerberg & Harrell 2016 (internal-external cross-validation); Debray et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array, Arrays
from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Local, Party
from hedgerow.core.question import local
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel

from ..columns import is_exact
from ..fitted import Fitted
from ..regression import logistic_regression
from .by_site import SiteQuality, quality_by_site
from .cells import LEAST
from .prediction import PredictionQuality, prediction_quality

if TYPE_CHECKING:
    import pandas


@local()
def by_own_model(broadcast: Arrays, party: Party, rng: Any, *, ask: Local, names: tuple[str, ...]) -> Any:
    """What `ask` says of the party's own model, of models (k, d) in the order of `names`."""
    k = names.index(party.id) if party.id in names else 0  # the made-up party that shows the shape of an answer has no name
    own: Any = broadcast | {"beta": broadcast["beta"][k]} if isinstance(broadcast, dict) else np.asarray(broadcast)[k]
    return ask(own, party, rng)


@dataclass(frozen=True)
class OwnModels:
    """A federation's handle through which each party is asked about its own model of some: what metrics see of a federation."""

    handle: Federation
    models: Array

    def _put(self, question: Local, broadcast: Any) -> tuple[Local, Arrays]:
        own = broadcast | {"beta": self.models} if isinstance(broadcast, dict) else self.models
        return partial(by_own_model, ask=question, names=tuple(self.handle.names)), own

    def sum(self, question: Local, broadcast: Any, *, bound: Bounds | None = None) -> Any:
        """Ask for a total."""
        return self.handle.sum(*self._put(question, broadcast), bound=bound)

    def gather(self, question: Local, broadcast: Any) -> Any:
        """Ask for every row."""
        return self.handle.gather(*self._put(question, broadcast))


@dataclass(frozen=True, eq=False)
class FittedElsewhere(Fitted):
    """Models (k, d), one for each party; `coef` reaches as far as any of them."""

    models: Array | None = None

    def ask(self, federation: Federation) -> Any:
        """The parties, each with its own model."""
        assert self.models is not None, "it is made by leave_one_site_out"
        return OwnModels(super().ask(federation), self.models)


@displayed
@dataclass(frozen=True, eq=False)
class SitesLeftOut:
    """Models that were fitted without one site each, and how good they are there.

    Attributes
    ----------
    names : tuple of str
        Sites that were left out.
    columns : tuple of str
    models : array of shape (k, d)
        Coefficients of all other sites.
    quality : PredictionQuality
        Of all records, each by the model that did not see its site.
    sites : SiteQuality or None
        Of each site, where that was asked for.
    numbers : int
        That left a party, fits included: the most of any.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    models: Array
    quality: PredictionQuality
    sites: SiteQuality | None
    numbers: int

    def to_frame(self) -> pandas.DataFrame:
        """Return the coefficients without each site: one row for each site that was left out."""
        import pandas

        return pandas.DataFrame(self.models, index=pandas.Index(self.names, name="without"), columns=list(self.columns))

    def summary(self) -> str:
        """What the sites that were left out say of the model, in sentences."""
        said = f"Each of {len(self.names)} sites was judged by a model of the others. {self.quality.summary()}"
        return f"{said} {self.sites.summary()}" if self.sites is not None else said


def leave_one_site_out(
    federation: Federation,
    formula: str,
    *,
    sites: bool = False,
    bins: int | None = None,
    least: float = LEAST,
    thresholds: Any = (),
    offset: str | None = None,
    weights: str | None = None,
    **settings: Any,
) -> SitesLeftOut:
    """Judge a logistic regression at each site by the model of all others: as many fits as there are sites, and one judgement.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.logistic_regression`.
    sites : bool
        Whether each site tells its own area and slope, to which every station has to agree; refused where rows are hidden.
    bins, least, thresholds
        As of `hedgerow.stats.prediction_quality`.
    **settings
        Of `logistic_regression`: `tol`, `max_rounds`.

    Raises
    ------
    SettingsInvalid (HR-511)
        There are fewer than three sites: without one of two, the fit is of the other one alone.
    UnlawfulChannel (HR-211)
        The channel adds noise, of which k fits would need k budgets; or `sites` where rows are hidden. Others as
        `logistic_regression`.
    """
    names, asked_before = tuple(federation.members), len(federation.ledger)
    if len(names) < 3 or federation.is_cohort:
        raise SettingsInvalid(
            f"leaving one of {len(names)} sites out: this takes three or more, and all of the federation.",
            remedy="With two, fit at one and ask prediction_quality at the other, if both agree to be seen alone.",
        )
    if not is_exact(federation):
        raise UnlawfulChannel(
            f"{len(names)} fits of nearly the same records need a budget each, and this channel clips or adds noise.",
            remedy="Fit once, and ask prediction_quality.",
        )
    if sites and federation.protection.hides_rows:
        raise UnlawfulChannel("rows are hidden, and sites=True asks for each.", remedy="Leave sites out.")
    fits = []
    for name in names:
        others = federation.pick([other for other in names if other != name])
        fits.append(logistic_regression(others, formula, offset=offset, weights=weights, **settings))
    models = np.stack([fit.coef_ for fit in fits])
    fitted = FittedElsewhere(fits[0].spec, np.abs(models).max(0), models=models)
    quality = prediction_quality(federation, fitted, bins=bins, least=least, thresholds=thresholds)
    told = quality_by_site(federation, replace(fitted), least=least) if sites else None
    entries = federation.ledger.entries[asked_before:]
    numbers = sum((entry.numbers or 0) * (1 - (entry.sampling.rate < 1) / len(names)) for entry in entries)
    return SitesLeftOut(names, fits[0].spec.names, models, quality, told, round(numbers))
