"""The programs that a study can name. To add one: a module, a test, and a line here."""

from __future__ import annotations

from hedgerow.errors import StudyInvalid, suggestion

from . import adapters, summaries
from .listing import Listing

PROGRAMS: dict[str, Listing] = {
    "fedavg": adapters.neural("fedavg", "Federated averaging of a torch model (McMahan et al. 2017)."),
    "fedprox": adapters.neural("fedprox", "FedAvg with a proximal term (Li et al. 2020)."),
    "scaffold": adapters.neural("scaffold", "Control variates against drift (Karimireddy et al. 2020)."),
    "fednova": adapters.neural("fednova", "Averaging normalised by local work (Wang et al. 2020)."),
    "feddyn": adapters.neural("feddyn", "Dynamically regularised parties (Acar et al. 2021)."),
    "fedopt": adapters.neural("fedopt", "Momentum, Adagrad, Adam or Yogi at the server (Reddi et al. 2021)."),
    "logistic_regression": adapters.regression("binomial", "Logistic regression; without noise equal to the pooled fit."),
    "linear_regression": adapters.regression("gaussian", "Linear regression; without noise equal to the pooled fit."),
    "moments": Listing(
        "hedgerow.stats:centred_sums", "Means and deviations of columns, by two sums.", summaries.moments, {"cross": False}
    ),
    "correlation": Listing(
        "hedgerow.stats:centred_sums", "Correlations of columns, by sums of products.", summaries.correlations, {"cross": True}
    ),
    "quantiles": Listing("hedgerow.stats:bisection", "Quantiles of a column, by bisection on counts.", summaries.quantiles),
    "counts": Listing("hedgerow.stats:level_totals", "How often each level of a category occurs.", summaries.counts),
    "decision_tree": adapters.tree("One decision tree from sums of histograms, level by level (Breiman et al. 1984)."),
    "fedsgd": adapters.neural("fedsgd", "Federated SGD of a torch model: one gradient step a round (McMahan et al. 2017)."),
}


def listing(name: str) -> Listing:
    """Return the listing of a program, or refuse a name that is not in the catalogue."""
    if name not in PROGRAMS:
        raise StudyInvalid(f"no program {name!r}.", remedy=suggestion(name, PROGRAMS))
    return PROGRAMS[name]
