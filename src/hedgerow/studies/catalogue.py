"""The programs that a study can name. To add one: a module, a test, and a line here."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cache

from hedgerow.core.declaration import Declaration, declared
from hedgerow.errors import MissingExtra, ProgramInvalid, StudyInvalid, suggestion

from . import adapters, found
from .listing import Listing

LISTED: dict[str, Listing] = {
    "logistic_regression": adapters.regression("binomial", "Logistic regression; without noise equal to the pooled fit."),
    "linear_regression": adapters.regression("gaussian", "Linear regression; without noise equal to the pooled fit."),
    "firth_regression": adapters.firth_regression("Firth's logistic regression: finite where classes separate (Firth 1993)."),
    "poisson_regression": adapters.log_regression(
        "poisson", "Poisson regression of counts, log link; equal to the pooled fit."
    ),
    "gamma_regression": adapters.log_regression("gamma", "Gamma regression of a target above zero, log link."),
    "negative_binomial_regression": adapters.negative_binomial_regression(
        "Counts that vary more than a Poisson distribution (NB2); alpha is estimated."
    ),
    "multinomial_regression": adapters.multinomial_regression("Logistic regression of a category of several levels."),
    "penalised_regression": adapters.penalised_regression("Lasso, ridge and elastic net of a linear, logistic or count model."),
    "penalty_path": adapters.penalty_path("A path of penalties with cross-validation by sums, and the penalty it chooses."),
    "huber_regression": adapters.huber_regression("Robust linear regression by Huber's loss, with intervals (Huber 1981)."),
    "quantile_regression": adapters.quantile_regression(
        "The line below which a share of targets lies (Koenker & Bassett 1978)."
    ),
    "svm": adapters.svm("Soft-margin linear support vector machine (Cortes & Vapnik 1995)."),
    "gradient_descent": adapters.gradient_descent(
        "Gradient descent on sums, plain or AdaGrad: the programs of van Aarle 2021, to be compared with exact fits."
    ),
    "hidden_gradient_descent": adapters.hidden_gradient_descent(
        "Gradient descent by terms that need no model, so that parties need not see it (Mandal & Gong 2019)."
    ),
}


class Catalogue(MutableMapping[str, Listing]):
    """Programs by name. Names are known without an import; a program is imported when it is looked up."""

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*LISTED, *found.own(), *found.others()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in LISTED or name in found.own() or name in found.others()

    def __getitem__(self, name: str) -> Listing:
        """Import a program.

        Raises
        ------
        KeyError
            Of a name that is not in the catalogue; see `listing`.
        ProgramInvalid (HR-106)
            The program leaves out what it must say of itself, or two packages declare one name.
        MissingExtra (HR-105)
            It needs a package that is not installed.
        """
        return LISTED[name] if name in LISTED else Listing.of(declaration(name))

    def __setitem__(self, name: str, listing: Listing) -> None:
        LISTED[name] = listing

    def __delitem__(self, name: str) -> None:
        del LISTED[name]

    def sentences(self) -> dict[str, str]:
        """What each program does, in one sentence; of a package that is broken, that it is."""
        said = {name: one.sentence for name, one in LISTED.items()} | {one.name: one.sentence for one in found.own().values()}
        for name in found.others():
            try:
                said.setdefault(name, self[name].sentence)
            except Exception as error:  # of somebody else's package, which may do anything when it is imported
                said[name] = f"cannot be used: {error}".partition("\n")[0]
        return {name: said[name] for name in self}


PROGRAMS = Catalogue()


@cache
def declaration(name: str) -> Declaration:
    """Import a program and return what it says of itself. Names of this package cannot be taken by another one."""
    ours = name in found.own()
    places = [found.own()[name]] if ours else list(found.others()[name])
    if len(places) > 1:
        raise ProgramInvalid(
            f"two packages declare a program {name!r}: {' and '.join(place.path for place in places)}.",
            remedy="Uninstall one of them, or rename its entry point.",
        )
    try:
        return declared(places[0].path, name)
    except ImportError as error:
        if ours:
            remedy = "pip install 'hedgerow[all]'"
            raise MissingExtra(f"{places[0].path} needs a package that is not installed: {error}.", remedy=remedy) from error
        raise ProgramInvalid(
            f"the program {name!r} is to be {places[0].path}, which cannot be imported: {error}.",
            remedy="Mend the entry point, or install what the package needs.",
        ) from error


def listing(name: str) -> Listing:
    """Return the listing of a program, or refuse a name that is not in the catalogue."""
    if name not in PROGRAMS:
        raise StudyInvalid(f"no program {name!r}.", remedy=suggestion(name, PROGRAMS))
    return PROGRAMS[name]
