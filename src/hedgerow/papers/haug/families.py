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
GRID = "as many as a grid of `CELLS` allows"
"""Bins of a histogram of whole records, which follow from the number of features."""
CELLS = 60_000


@dataclass(frozen=True, eq=False)
class ModelWay:
    """How a model is fitted.

    Attributes
    ----------
    name : str
    form : {"as printed", "corrected", "ours", "without noise"}
    program : str
        As a study names it, or `DUALS`.
    settings : mapping
        Of that program, beside those of `formula`, `log`, `seed`, `epsilon` and `delta` that it takes.
    why : str
        What is to be known of it, in a sentence.
    pure : bool
        Whether it is given no delta.
    by_channel : int
        Questions of a program that knows no epsilon: the channel adds the noise that they may have together.
    """

    name: str
    form: Form
    program: str
    settings: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    pure: bool = False
    by_channel: int = 0


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
        "The survey gives no number of any single method: compare orders, not digits. The belief net (private_belief_net) "
        "and the generator (private_gan) are programs of their own, which take longer.",
    ),
}
BINNED: dict[str, Any] = {"bins": 16}
PRINTED_CONSTANTS = ModelWay(
    "functional mechanism, printed constants",
    "as printed",
    "functional_mechanism",
    why="Private: the constants are those of longer rows and of replaced records, and grow with the square of the number of "
    "columns: 7.6 times the noise that is due on insurance, 15 on CASP, 22 on cardio, 895 on Adult.",
    pure=True,
)
EXACT_CONSTANTS = ModelWay(
    "functional mechanism, exact constants",
    "corrected",
    "functional_mechanism",
    {"constants": "exact"},
    why="The same polynomial with the bound that a record of length one reaches.",
    pure=True,
)
GONG = ModelWay(
    "noise by relevance, not charged",
    "as printed",
    "relevance_regression",
    why="No epsilon holds: the relevance of features is an exact statistic of all records, used as if it were public.",
    pure=True,
)
CHARGED = ModelWay(
    "noise by relevance, charged",
    "corrected",
    "private_relevance",
    why="A tenth of the budget asks for the relevances; the rest for coefficients, with less noise where they are high.",
    pure=True,
)
SUFFICIENT = ModelWay(
    "sufficient statistics",
    "ours",
    "private_linear",
    why="Least squares on noisy second moments, with a ridge of the size of the noise; Gaussian noise.",
)
LEAST_SQUARES = ModelWay(
    "least squares",
    "without noise",
    "private_linear",
)

WAYS: Mapping[str, tuple[ModelWay, ...]] = {
    "linear": (
        PRINTED_CONSTANTS,
        GONG,
        EXACT_CONSTANTS,
        CHARGED,
        SUFFICIENT,
        ModelWay(
            "majorised logistic regression on bins",
            "ours",
            "private_logistic",
            BINNED | {"method": "majorised"},
            why="One noisy matrix, then noisy scores preconditioned by it; 16 public bins for each number.",
        ),
        LEAST_SQUARES,
    ),
    "error": (
        PRINTED_CONSTANTS,
        ModelWay(
            "DPME, one histogram of whole records",
            "as printed",
            "private_histogram",
            {"bins": GRID},
            why="Private: one noisy count for each cell of a grid, which grows with every feature.",
            pure=True,
        ),
        ModelWay(
            "filter-priority",
            "as printed",
            "private_histogram",
            {"bins": GRID, "method": "filter-priority"},
            why="Private: the same histogram, of which counts above a threshold are kept.",
            pure=True,
        ),
        GONG,
        EXACT_CONSTANTS,
        CHARGED,
        SUFFICIENT,
        LEAST_SQUARES,
    ),
    "machines": (
        ModelWay(
            "noise on dual variables",
            "as printed",
            DUALS,
            why="No epsilon holds: one record moves the others' dual variables together by many times C, to which their noise "
            "is scaled; and all records have to be in one place.",
        ),
        ModelWay(
            "output perturbation",
            "corrected",
            "private_local",
            {"method": "output", "loss": "svm"},
            why="Noise on the weights, which one record moves by no more than its slope over the penalty; fitted by one party.",
        ),
        ModelWay(
            "objective perturbation",
            "corrected",
            "private_local",
            {"method": "objective", "loss": "svm"},
            why="A random slope in the objective of a smoothed hinge, exactly accounted; fitted by one party.",
        ),
        ModelWay(
            "majorised smoothed hinge",
            "ours",
            "private_svm",
            why="A smoothed hinge by noisy sums: one matrix, then scores preconditioned by it; records stay where they are.",
        ),
        ModelWay(
            "kernel by random Fourier features",
            "ours",
            "fourier_machine",
            {"seed": 0},
            why="Public random features of a Gaussian kernel, then least squares on noisy second moments, one question.",
        ),
        ModelWay("dual variables without noise", "without noise", DUALS),
    ),
    "forests": (
        ModelWay(
            "splits by gain ratio",
            "as printed",
            "gain_ratio_forest",
            why="No epsilon holds: one record moves a gain ratio by up to its whole range, so that the exponential choice has "
            "no scale; and its histograms are exact.",
        ),
        ModelWay(
            "splits by largest counts",
            "corrected",
            "hybrid_forest",
            why="Split choices by the counts of the larger classes, which one record moves by 1, and noisy counts at leaves.",
            pure=True,
        ),
        ModelWay(
            "random trees",
            "ours",
            "random_trees",
            why="400 trees whose splits follow a public seed, boosted in batches of 20: of them only leaves are asked.",
        ),
        ModelWay(
            "additive histograms",
            "ours",
            "additive_model",
            why="Twenty histograms of residuals over all features' bins: a shape for each feature.",
        ),
        ModelWay("splits by gain ratio without noise", "without noise", "gain_ratio_forest", {"epsilon": 1e9}),
        ModelWay("random forest", "without noise", "random_forest", {"trees": 40, "depth": 8}),
    ),
    # Of selective SGD as corrected, rounds and learning rate were looked at on 2000 training images of MNIST held out of 8000;
    # hidden units and rounds of the others on digits and on the study's own images.
    "networks": (
        ModelWay(
            "auto-encoder of polynomials",
            "as printed",
            "private_auto_encoder",
            {"form": "printed", "hidden": [30]},
            why="No epsilon is proved: the noise of a layer is drawn once, while the units that it is of change in each step.",
        ),
        ModelWay(
            "selective SGD",
            "as printed",
            "selective_sgd",
            {"form": "printed", "model": "mlp", "hidden": [32], "rounds": 10, "batch_size": 64.0},
            why="Its epsilon is of one parameter and round, and adds up over all that are uploaded; gradients are of batches.",
        ),
        ModelWay(
            "noise by relevance of neurons",
            "as printed",
            "adaptive_network",
            {"form": "printed", "rounds": 30, "batch_size": 6000.0},
            why="No epsilon holds: the relevance of neurons is an exact statistic of all records.",
        ),
        ModelWay(
            "auto-encoder of one noisy matrix",
            "corrected",
            "private_auto_encoder",
            {"hidden": [30]},
            why="All that a layer of polynomials can learn is in the second moments, so that they are asked for once.",
        ),
        ModelWay(
            "selective SGD, clipped by record",
            "corrected",
            "selective_sgd",
            {
                "model": "mlp",
                "hidden": [32],
                "rounds": 60,
                "batch_size": 600.0,
                "sampling_rate": 0.1,
                "learning_rate": 0.5,
            },
            why="Gradients of single records are clipped, and noise is of all that is uploaded.",
        ),
        ModelWay(
            "noise by relevance of neurons, charged",
            "corrected",
            "adaptive_network",
            {"rounds": 30, "batch_size": 6000.0},
            why="The relevances are asked for through noise of their own.",
        ),
        ModelWay(
            "least squares of pixels",
            "ours",
            "private_auto_encoder",
            {"hidden": []},
            why="The same noisy matrix without hidden units: what a network has to beat.",
        ),
    ),
    "adult": (
        ModelWay(
            "majorised Newton on bins",
            "ours",
            "private_logistic",
            BINNED | {"method": "majorised"},
            why="One noisy matrix, then noisy scores preconditioned by it; 16 public bins for each number.",
        ),
        ModelWay(
            "sufficient statistics on bins",
            "ours",
            "private_linear",
            BINNED,
            why="Least squares on noisy second moments, one question, with a ridge of the size of the noise.",
        ),
        ModelWay(
            "gradient descent on bins",
            "ours",
            "private_logistic",
            BINNED | {"method": "gradient"},
            why="Noisy gradients with momentum.",
        ),
        ModelWay(
            "noisy Newton",
            "ours",
            "logistic_regression",
            {"rounds": 3},
            why="Columns in their own units: a record may be as long as their ranges allow.",
            by_channel=3,
        ),
        ModelWay(
            "additive histograms",
            "ours",
            "additive_model",
            why="Twenty histograms of residuals over all features' bins: a shape for each feature.",
        ),
        ModelWay(
            "random trees",
            "ours",
            "random_trees",
            why="400 trees whose splits follow a public seed, boosted in batches of 20: of them only leaves are asked.",
        ),
        PRINTED_CONSTANTS,
        ModelWay("logistic regression on bins", "without noise", "private_logistic", BINNED),
    ),
}
"""Ways of each family, in the order of its table."""
