"""The programs that a study can name. To add one: a module, a test, and a line here."""

from __future__ import annotations

from hedgerow.errors import StudyInvalid, suggestion

from . import adapters
from .listing import Listing

PROGRAMS: dict[str, Listing] = {
    "fedavg": adapters.neural("train", "Federated averaging of a torch model (McMahan et al. 2017)."),
    "logistic_regression": adapters.regression(
        "logistic", "binomial", "Logistic regression with inference; equal to the pooled fit."
    ),
    "linear_regression": adapters.regression(
        "linear", "gaussian", "Linear regression with inference; equal to the pooled fit."
    ),
    "quantiles": Listing("hedgerow.stats:bisection", "Quantiles of a column, by bisection on counts."),
    "moments": Listing("hedgerow.stats:centred_sums", "Means and deviations of columns, by two sums."),
    "decision_tree": adapters.tree("One decision tree from sums of histograms, level by level (Breiman et al. 1984)."),
    "fedsgd": adapters.neural("descend", "Federated SGD of a torch model: one gradient step a round (McMahan et al. 2017)."),
}


def listing(name: str) -> Listing:
    """Return the listing of a program, or refuse a name that is not in the catalogue."""
    if name not in PROGRAMS:
        raise StudyInvalid(f"no program {name!r}.", remedy=suggestion(name, PROGRAMS))
    return PROGRAMS[name]
