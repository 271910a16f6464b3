"""Chapter 6.2 of the survey: its five families of models, the numbers that it prints, and the ways in which we fit each.

A way is a program with its settings. Its form says what its epsilon is worth:

    as printed      the paper's algorithm, with its constants; where it is not private, it says why
    corrected       the same algorithm with a bound that is proved and, where there is one, reached
    ours            what we would take for this budget
    without noise   the same records without any privacy

Source : T. Haug, A survey of federated learning and differential privacy, 2022, chapters 4 and 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["as printed", "corrected", "ours", "without noise"]
FamilyOfModels = Literal["linear", "error", "machines", "forests", "networks", "adult"]
DUALS = "dual variables"
"""The way that needs all records in one place, and is no program."""


@dataclass(frozen=True, eq=False)
class Way:
    """How a model is fitted.

    Attributes
    ----------
    name : str
    form : {"as printed", "corrected", "ours", "without noise"}
    program : str
        As a study names it, or `DUALS`.
    settings : mapping
        Of that program, beside `formula`, `log`, `epsilon` and `delta`.
    why : str
        What is to be known of it, in a sentence.
    pure : bool
        Whether it is given no delta.
    by_channel : int
        Questions of a program that knows no epsilon: the channel adds the noise that they may have together.
    without : tuple of str
        Which of the four settings the program does not take.
    """

    name: str
    form: Form
    program: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    pure: bool = False
    by_channel: int = 0
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class PrintedFamily:
    """What the survey prints of a family.

    Attributes
    ----------
    title : str
    measure : {"accuracy", "mean squared error"}
    lines : mapping from a name to (epsilon, value) pairs
        Infinite epsilon is without noise.
    source : str
        Where the numbers stand.
    unnamed : str
        What the survey leaves out.
    """

    title: str
    measure: Literal["accuracy", "mean squared error"]
    lines: Mapping[str, tuple[tuple[float, float], ...]]
    source: str
    unnamed: str


NONE = math.inf
SURVEY: Mapping[str, PrintedFamily] = {
    "linear": PrintedFamily(
        "Linear regression as a classifier",
        "accuracy",
        {"Gong et al. 2019": ((0.05, 0.83), (1.6, 0.85), (NONE, 0.86))},
        "Haug 2022, section 6.2, from Gong et al. 2019",
        "The survey names neither data set nor how a linear regression was made a classifier: compare orders, not digits.",
    ),
    "error": PrintedFamily(
        "Linear regression of a number",
        "mean squared error",
        {
            "functional mechanism, printed": ((0.1, 0.10), (3.2, 0.10), (NONE, 0.10)),
            "filter-priority and DPME, printed": ((0.1, 0.35), (3.2, 0.15)),
        },
        "Haug 2022, section 6.2, from Zhang et al. 2012",
        "The census extracts of the paper are not at hand. Targets are scaled to [-1, 1]: compare orders, not digits.",
    ),
    "machines": PrintedFamily(
        "Support vector machines",
        "accuracy",
        {"Zhang et al. 2019": ((0.005, 0.65), (0.05, 0.85), (1.0, 0.90), (NONE, 0.90))},
        "Haug 2022, section 6.2, from Zhang et al. 2019",
        "The survey names no data set: compare orders, not digits.",
    ),
    "forests": PrintedFamily(
        "Random forests",
        "accuracy",
        {"Hou et al. 2019": ((0.1, 0.85), (1.0, 0.85), (NONE, 0.875))},
        "Haug 2022, section 6.2, from Hou et al. 2019: around 85 % from 0.1 to 1, where it hardly changes",
        "The survey names neither data set nor number of trees: compare orders, not digits.",
    ),
    "networks": PrintedFamily(
        "Networks",
        "accuracy",
        {"most of six methods": ((0.2, 0.70), (8.0, 0.80))},
        "Haug 2022, section 6.2, from Gong et al. 2020: above 80 % at 8, and around 10 points less at 0.2",
        "The survey gives no number of any single method: compare orders, not digits.",
    ),
}
BINNED: Mapping[str, Any] = {"bins": 16}

WAYS: Mapping[str, tuple[Way, ...]] = {
    "linear": (),
    "error": (),
    "machines": (
        Way(
            "noise on dual variables",
            "as printed",
            DUALS,
            why="No epsilon holds: one record moves the others' dual variables together by many times C, to which their noise "
            "is scaled; and all records have to be in one place.",
        ),
        Way("the same without noise", "without noise", DUALS),
    ),
    "forests": (
        Way(
            "splits by gain ratio",
            "as printed",
            "gain_ratio_forest",
            why="No epsilon holds: one record moves a gain ratio by up to its whole range, so that the exponential choice has "
            "no scale; and its histograms are exact.",
            without=("formula", "delta", "log"),
        ),
        Way(
            "the same without noise",
            "without noise",
            "gain_ratio_forest",
            {"epsilon": 1e9},
            without=("formula", "delta", "log"),
        ),
    ),
    "networks": (),
    "adult": (
        Way(
            "majorised Newton on bins",
            "ours",
            "private_logistic",
            BINNED,
            why="One noisy matrix, then noisy scores preconditioned by it; 16 public bins for each number.",
        ),
        Way(
            "noisy Newton",
            "ours",
            "logistic_regression",
            {"rounds": 3},
            why="Columns in their own units: a record may be as long as their ranges allow.",
            by_channel=3,
            without=("log",),
        ),
        Way(
            "additive histograms",
            "ours",
            "additive_model",
            why="Twenty histograms of residuals over all features' bins: a shape for each feature.",
            without=("formula",),
        ),
        Way("logistic regression on bins", "without noise", "private_logistic", BINNED),
    ),
}
"""Ways of each family, in the order of its table."""
