"""Data sets on survival that come with the package lifelines: no download, no folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hedgerow.errors import MissingExtra

from .entry import CatalogueEntry, Parts, binary, category, csv, declare, integer


def _bundled(file: str) -> Parts:
    """The columns of a file of lifelines, which is found and not imported."""
    found = find_spec("lifelines")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("this data set comes with lifelines.", remedy="pip install 'lifelines>=0.30'")
    return csv()(Path(next(iter(found.submodule_search_locations))) / "datasets" / file)


def _gbsg2() -> Parts:
    return _bundled("gbsg2.csv")


def _rossi() -> Parts:
    return _bundled("rossi.csv")


SURVIVAL = {
    "gbsg2": CatalogueEntry(
        "German Breast Cancer Study Group 2: 686 women with node-positive breast cancer, 299 of whom had a recurrence or died; "
        "M. Schumacher et al., Journal of Clinical Oncology 1994; as it comes with lifelines (MIT).",
        declare(
            category("horth", "no yes", description="hormonal therapy"),
            integer("age", 18, 100, "years"),
            category("menostat", "Pre Post", description="menopausal status"),
            integer("tsize", 0, 150, "mm", description="size of the tumour"),
            category("tgrade", "I II III", description="grade of the tumour"),
            integer("pnodes", 0, 60, description="positive lymph nodes"),
            integer("progrec", 0, 3000, "fmol", description="progesterone receptor"),
            integer("estrec", 0, 1500, "fmol", description="oestrogen receptor"),
            integer("time", 0, 3000, "days", role="time", description="without recurrence"),
            binary("cens", role="target", description="1 recurrence or death, 0 censored"),
        ),
        _gbsg2,
    ),
    "rossi": CatalogueEntry(
        "Recidivism: 432 men released from prisons in Maryland and followed for a year, 114 of whom were arrested again; "
        "P. Rossi, R. Berk and K. Lenihan 1980; as it comes with lifelines (MIT).",
        declare(
            integer("week", 0, 52, "weeks", role="time", description="until the first arrest, or the end of the year"),
            binary("arrest", role="target"),
            binary("fin", description="given financial aid"),
            integer("age", 15, 60, "years"),
            binary("race", description="1 is black"),
            binary("wexp", description="had worked full time before"),
            binary("mar", description="married at release"),
            binary("paro", description="released on parole"),
            integer("prio", 0, 30, description="convictions before"),
        ),
        _rossi,
    ),
}
