"""Data sets that come with Hedgerow itself (`bundled/`), or with scikit-learn and statsmodels: no download, no folder."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import MissingExtra

from .column import Column
from .entry import CatalogueEntry, Parts, binary, category, columns_of, declare, integer, number


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = {"sklearn": "scikit-learn"}.get(name.split(".")[0], name.split(".")[0])
        raise MissingExtra(f"this data set comes with {package}.", remedy="pip install 'hedgerow[data]'") from None


def _own(file: str) -> Parts:
    path = Path(__file__).with_name("bundled") / file
    names = path.read_text(encoding="utf-8").partition("\n")[0].strip().lower().split(",")
    return dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1, unpack=True), strict=True)), None


def _breast_cancer() -> Parts:
    return _own("breast_cancer.csv")


def _heart_failure() -> Parts:
    return _own("heart_failure.csv")


def _diabetes() -> Parts:
    frame = _module("sklearn.datasets").load_diabetes(scaled=False, as_frame=True).frame
    return columns_of(frame.rename(columns={"target": "progression"})), None


def _digits() -> Parts:
    digits = _module("sklearn.datasets").load_digits()
    return {"image": digits.data.astype(np.uint8), "digit": digits.target}, None


def _iris() -> Parts:
    iris = _module("sklearn.datasets").load_iris()
    names = [name.removesuffix(" (cm)").replace(" ", "_") for name in iris.feature_names]
    columns = dict(zip(names, np.rint(10 * iris.data).T, strict=True))  # published to the millimetre
    return columns | {"species": np.array(iris.target_names)[iris.target]}, None


def _hie() -> Parts:
    return columns_of(_module("statsmodels.datasets.randhie").load_pandas().data), None


def _fair() -> Parts:
    return columns_of(_module("statsmodels.datasets.fair").load_pandas().data), None


def _nucleus_columns() -> tuple[Column, ...]:
    highest = {  # of the mean over the nuclei of an image, of its standard error, and of the mean of the largest three
        "radius": (40, 4, 60),
        "texture": (60, 8, 80),
        "perimeter": (250, 30, 400),
        "area": (4000, 800, 8000),
        "smoothness": (0.3, 0.05, 0.4),
        "compactness": (0.6, 0.25, 2),
        "concavity": (0.8, 0.6, 2),
        "concave_points": (0.4, 0.1, 0.5),
        "symmetry": (0.5, 0.15, 1),
        "fractal_dimension": (0.2, 0.05, 0.4),
    }
    names = ("mean_{}", "{}_error", "worst_{}")
    return tuple(
        number(name.format(trait), 0, ends[part]) for part, name in enumerate(names) for trait, ends in highest.items()
    )


_SEX = "as published: coded 1 and 2, without saying which is which"
_OCCUPATION = "1 student, 2 farming or unskilled, 3 white-collar, 4 teacher, nurse or artist, 5 managerial, 6 professional"

BUNDLED = {
    "breast_cancer": CatalogueEntry(
        "Breast Cancer Wisconsin (Diagnostic): 569 fine-needle aspirates, 30 measurements of cell nuclei, malignant or "
        "benign; W. H. Wolberg, W. N. Street and O. L. Mangasarian, UCI 17, CC BY 4.0.",
        declare(*_nucleus_columns(), binary("malignant", role="target")),
        _breast_cancer,
    ),
    "heart_failure": CatalogueEntry(
        "Heart Failure Clinical Records: 299 patients, 96 of whom died during follow-up; T. Ahmad et al. 2017, D. Chicco "
        "and G. Jurman 2020, UCI 519, CC BY 4.0.",
        declare(
            number("age", 18, 110, "years"),
            binary("anaemia"),
            number("creatinine_phosphokinase", 0, 10_000, "µg/L"),
            binary("diabetes"),
            number("ejection_fraction", 0, 100, "%"),
            binary("high_blood_pressure"),
            number("platelets", 0, 1_000_000, "per mL"),
            number("serum_creatinine", 0, 15, "mg/dL"),
            number("serum_sodium", 100, 170, "mEq/L"),
            binary("sex", description="1 is a man"),
            binary("smoking"),
            integer("time", 0, 365, "days", role="ignore", description="follow-up, which ends with death"),
            binary("death_event", role="target"),
        ),
        _heart_failure,
    ),
    "diabetes": CatalogueEntry(
        "Diabetes: 442 patients, ten measurements at baseline and progression of the disease one year later; Efron, "
        "Hastie, Johnstone and Tibshirani 2004; licence not stated.",
        declare(
            number("age", 18, 100, "years"),
            category("sex", "1 2", description=_SEX),
            number("bmi", 10, 60, "kg/m²"),
            number("bp", 40, 180, "mmHg", description="mean arterial pressure"),
            number("s1", 50, 400, "mg/dL", description="total serum cholesterol"),
            number("s2", 0, 300, "mg/dL", description="low-density lipoproteins"),
            number("s3", 0, 150, "mg/dL", description="high-density lipoproteins"),
            number("s4", 0, 15, description="total cholesterol over high-density lipoproteins"),
            number("s5", 2, 8, description="logarithm of serum triglycerides in mg/dL"),
            number("s6", 30, 200, "mg/dL", description="blood sugar"),
            number("progression", 0, 400, role="target", description="quantitative measure after one year"),
        ),
        _diabetes,
    ),
    "digits": CatalogueEntry(
        "Optical Recognition of Handwritten Digits (test part): 1797 images of 8 x 8 pixels; E. Alpaydin and "
        "C. Kaynak, UCI 80, CC BY 4.0.",
        declare(
            integer("image", 0, 16, shape=(64,), description="8 x 8 pixels, row by row"),
            category("digit", "0 1 2 3 4 5 6 7 8 9", role="target"),
        ),
        _digits,
    ),
    "iris": CatalogueEntry(
        "Iris: 150 flowers of three species, four lengths and widths; E. Anderson 1935, R. A. Fisher 1936, UCI 53, CC BY 4.0.",
        declare(
            integer("sepal_length", 30, 90, "mm"),
            integer("sepal_width", 10, 60, "mm"),
            integer("petal_length", 0, 90, "mm"),
            integer("petal_width", 0, 40, "mm"),
            category("species", "setosa versicolor virginica", role="target"),
        ),
        _iris,
    ),
    "hie": CatalogueEntry(
        "RAND Health Insurance Experiment: 20190 person-years, visits to a doctor under randomly assigned insurance "
        "plans; Cameron and Trivedi 2005, from RAND; public domain as far as statsmodels knows.",
        declare(
            integer("mdvis", 0, 100, "visits", role="target", description="outpatient visits to a doctor in a year"),
            number("lncoins", 0, 4.62, description="ln(coinsurance in percent + 1)"),
            binary("idp", description="individual deductible plan"),
            number("lpi", 0, 8, description="ln(max(1, annual participation incentive in dollars))"),
            number("fmde", 0, 10, description="ln(max(1, maximum expenditure / (0.01 coinsurance))); 0 if idp"),
            number("physlm", 0, 1, description="physical limitation"),
            number("disea", 0, 60, description="chronic diseases"),
            binary("hlthg", description="rates own health good (reference: excellent)"),
            binary("hlthf", description="rates own health fair"),
            binary("hlthp", description="rates own health poor"),
        ),
        _hie,
    ),
    "fair": CatalogueEntry(
        "Extramarital affairs: 6366 married women who answered a Redbook survey in 1974; R. Fair, Journal of Political "
        "Economy 1978; public domain as far as statsmodels knows.",
        declare(
            integer("rate_marriage", 1, 5, description="1 very poor to 5 very good"),
            number("age", 15, 50, "years"),
            number("yrs_married", 0, 30, "years"),
            number("children", 0, 6, description="5.5 stands for five or more"),
            integer("religious", 1, 4, description="1 not to 4 strongly"),
            integer("educ", 9, 20, "years"),
            category("occupation", "1 2 3 4 5 6", description=_OCCUPATION),
            category("occupation_husb", "1 2 3 4 5 6", description=_OCCUPATION),
            number("affairs", 0, 100, role="target", description="measure of time spent in affairs, per year"),
        ),
        _fair,
    ),
}
