"""Tables 6.3 to 6.14 of van Aarle's thesis as printed: what stands in each, and which of our programs stands beside it.

Source : C. van Aarle, Analysing data isolated in personal data stores, 2021, chapter 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["coefficients", "odds ratios", "figures"]


@dataclass(frozen=True)
class Printed:
    """One table of the thesis.

    Attributes
    ----------
    title : str
    kind : {"coefficients", "odds ratios", "figures"}
        What a row is about: a variable, or a measure.
    programs : mapping of str to str
        His federated programs, and ours that repeat them (`hedgerow.papers.van_aarle.replay.METHODS`).
    text : str
        A line for each row: data set, variable or measure, his central number, his federated ones, their learning rates.
    on_others : bool
        Whether it is about records that were not fitted.
    """

    title: str
    kind: Kind
    programs: Mapping[str, str]
    text: str
    on_others: bool = False

    @property
    def rows(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """His numbers by data set and row; as printed."""
        lines = [[part.strip() for part in line.split("|")] for line in self.text.strip().splitlines()]
        return {(line[0], line[1]): tuple(line[2:]) for line in lines}

    def of(self, called: str) -> dict[str, tuple[str, ...]]:
        """His numbers of one data set, by row."""
        return {row: values for (name, row), values in self.rows.items() if name == called}


def agrees(printed: str, value: float) -> bool:
    """Whether a number is one that was printed, rounded or cut off: it lies within one unit of the last printed digit."""
    mantissa, _, exponent = printed.lower().replace("e", " e ").partition(" e ")
    decimals = len(mantissa.strip().partition(".")[2])
    unit = 10.0 ** ((int(exponent) if exponent else 0) - decimals)
    return abs(float(printed) - value) <= unit * (1 + 1e-9)


V2_LINEAR, V2_LOGISTIC = {"FedLinReg-v2": "v2"}, {"FedLogReg-v2": "v2"}

TABLES: dict[str, Printed] = {
    "6.3": Printed(
        "Table 6.3: coefficients, made data",
        "coefficients",
        {"FedLinReg-v1": "tolerance"},
        """
        made 1 | x1 | 60.84 | 60.83
        made 2 | x1 | 70.32 | 74.29
        made 3 | x1 | 17.83 | 17.82
        made 3 | x2 | 38.08 | 38.08
        made 4 | x1 | 32.07 | 30.41
        made 4 | x2 | 84.45 | 85.07
        made 5 | x1 | 27.62 | 27.63
        made 5 | x2 | 34.14 | 34.14
        made 5 | x3 | 0.00 | -0.01
        made 5 | x4 | 0.00 | 0.00
        made 5 | x5 | 0.00 | 0.00
        made 5 | x6 | 99.89 | 99.87
        made 5 | x7 | 8.26 | 8.25
        made 5 | x8 | 0.00 | -0.02
        made 5 | x9 | 12.31 | 12.31
        made 6 | x1 | 0.50 | 3.34
        made 6 | x2 | -3.18 | -6.63
        made 6 | x3 | 58.40 | 57.72
        made 6 | x4 | -4.23 | -5.22
        made 6 | x5 | 97.15 | 94.24
        made 6 | x6 | 91.06 | 92.15
        made 6 | x7 | 41.80 | 42.51
        made 6 | x8 | 65.60 | 63.76
        made 6 | x9 | -2.31 | -1.92
        """,
    ),
    "6.4": Printed(
        "Table 6.4: mean squared error, columns as they are",
        "figures",
        {"FedLinReg": "sweep", "FedLinReg+AG": "sweep_adagrad"},
        """
        insurance | MSE | 1.55E+08 | 1.57E+08 | 1.58E+08 | 5E-5 | 50
        city | MSE | 2.32E+00 | 1.23E+01 | 4.59E+00 | 5E-6 | 50
        CASP | MSE | 2.47E+01 | 2.95E+06 | 1.39E+05 | 5E-14 | 5000
        """,
    ),
    "6.5": Printed(
        "Table 6.5: log-loss and accuracy, columns as they are",
        "figures",
        {"FedLogReg": "sweep", "FedLogReg+AG": "sweep_adagrad"},
        """
        haberman | log-loss | 0.4617 | 2.9201 | 0.5483 | 0.005 | 0.05
        haberman | accuracy | 0.77 | 0.74 | 0.74 | 0.005 | 0.05
        breast cancer | log-loss | 0.3446 | inf | 2.7700 | | 0.05
        breast cancer | accuracy | 0.82 | | 0.47 | | 0.05
        readmission | log-loss | 0.6388 | 1.2079 | 1.9001 | 0.005 | 0.005
        readmission | accuracy | 0.61 | 0.41 | 0.46 | 0.005 | 0.005
        """,
    ),
    "6.6": Printed(
        "Table 6.6: R squared with and without standardised columns",
        "figures",
        {"FedLinReg": "sweep", "FedLinReg+SSO 2.0": "sso"},
        """
        insurance | R2 | 0.11542 | 0.10972 | 0.11542 | 5E-05 | 0.1
        city | R2 | 0.14370 | -546.10922 | 0.14370 | 5E-09 | 0.1
        CASP | R2 | 0.29178 | -75750.62633 | 0.29084 | 5E-14 | 0.1
        """,
    ),
    "6.7": Printed(
        "Table 6.7: log-loss with and without standardised columns",
        "figures",
        {"FedLogReg": "sweep", "FedLogReg+SSO 2.0": "sso"},
        """
        haberman | log-loss | 0.49374 | 0.67341 | 0.49395 | 5E-3 | 0.1
        breast cancer | log-loss | 0.48160 | 15.48325 | 0.52266 | 5E-6 | 0.1
        readmission | log-loss | 0.67563 | 2.54954 | 0.67564 | 5E-3 | 0.1
        """,
    ),
    "6.8": Printed(
        "Table 6.8: coefficients in standard deviations",
        "coefficients",
        V2_LINEAR,
        """
        insurance | age | 0.34568 | 0.34568
        insurance | bmi | 0.06179 | 0.06179
        insurance | children | -0.07045 | -0.07045
        city | doctors | 0.16844 | 0.16844
        city | hospitals | 0.11678 | 0.11678
        city | income | -0.21360 | -0.21361
        city | density | -0.26855 | -0.26854
        CASP subset | f1 | -0.69146 | -0.10181
        CASP subset | f2 | 1.19925 | 0.60785
        CASP subset | f3 | -0.03126 | 0.20029
        CASP subset | f4 | -0.35510 | -0.46978
        CASP | f1 | 0.92523 | 0.17667
        CASP | f2 | 0.81175 | 0.85069
        CASP | f3 | -0.03544 | -0.05841
        CASP | f4 | -1.23966 | -1.24282
        CASP | f5 | -1.07380 | -0.41327
        CASP | f6 | 0.73016 | 0.79381
        CASP | f7 | -0.38525 | -0.38342
        CASP | f8 | 0.15355 | 0.16858
        CASP | f9 | -0.0717 | -0.05954
        """,
    ),
    "6.9": Printed(
        "Table 6.9: odds ratios of a standard deviation, by itself (OR) and adjusted (AOR)",
        "odds ratios",
        V2_LOGISTIC,
        """
        cardio1 | height, OR | 1.0987 | 1.0987
        cardio1 | height, AOR | 1.0961 | 1.0961
        cardio1 | weight, OR | 1.2195 | 1.2195
        cardio1 | weight, AOR | 1.2824 | 1.2824
        cardio1 | age, OR | 1.8482 | 1.8482
        cardio1 | age, AOR | 1.8366 | 1.8366
        cardio2 | gender, OR | 1.1075 | 1.1021
        cardio2 | gender, AOR | 1.1609 | 1.1609
        cardio2 | smoke, OR | 0.9649 | 0.9649
        cardio2 | smoke, AOR | 1.1787 | 1.1777
        cardio2 | alco, OR | 0.6138 | 0.6138
        cardio2 | alco, AOR | 0.5537 | 0.5545
        """,
    ),
    "6.10": Printed(
        "Table 6.10: R squared and mean squared error, standardised",
        "figures",
        V2_LINEAR,
        """
        insurance | R2 | 0.13323 | 0.13323
        insurance | MSE | 0.86676 | 0.86676
        city | R2 | 0.14370 | 0.14370
        city | MSE | 0.85629 | 0.85629
        CASP | R2 | 0.39233 | 0.39087
        CASP | MSE | 0.60767 | 0.60913
        """,
    ),
    "6.11": Printed(
        "Table 6.11: area under the ROC curve and log-loss",
        "figures",
        V2_LOGISTIC,
        """
        haberman | AUC | 0.649315 | 0.649315
        haberman | log-loss | 0.57381 | 0.57381
        readmission | AUC | 0.566428 | 0.566250
        readmission | log-loss | 0.68334 | 0.68334
        breast cancer | AUC | 0.848558 | 0.843450
        breast cancer | log-loss | 0.48160 | 0.48318
        cardio1 | AUC | 0.678929 | 0.678393
        cardio1 | log-loss | 0.64174 | 0.64178
        TWOC-150 | AUC | 1.0 | 1.0
        TWOC-150 | log-loss | 1.61522e-06 | 0.04132
        """,
    ),
    "6.12": Printed(
        "Table 6.12: mean squared error of other records, standardised",
        "figures",
        V2_LINEAR,
        """
        insurance | MSE | 1.04783 | 1.04783
        CASP | MSE | 1.27546 | 1.27833
        """,
        on_others=True,
    ),
    "6.13": Printed(
        "Table 6.13: log-loss of other records",
        "figures",
        V2_LOGISTIC,
        """
        cardio1 | log-loss | 0.67747 | 0.67588
        haberman | log-loss | 0.51933 | 0.51933
        readmission | log-loss | 0.69812 | 0.69812
        """,
        on_others=True,
    ),
    "6.14": Printed(
        "Table 6.14: mini-batches of stores",
        "figures",
        {"SFedLogReg-v1": "mini_v1", "SFedLogReg-v2": "mini_v2"},
        """
        TWOC-5000 | AUC | 0.99983 | 0.81014 | 0.99975
        TWOC-5000 | log-loss | 0.00294 | 0.06768 | 0.00879
        TWOC-5000 | precision | 0.98019 | | 0.97872
        TWOC-5000 | recall | 0.99 | 0.0 | 0.92
        """,
    ),
}
"""TWOC, patient data of a project, is not public: our numbers beside it are those of a stand-in."""

ORIGINS: dict[str, tuple[float, ...]] = {
    "made 1": (60.84,),
    "made 2": (63.78,),
    "made 3": (17.83, 38.08),
    "made 4": (32.27, 86.45),
    "made 5": (27.62, 34.14, 0.0, 0.0, 0.0, 99.89, 8.26, 0.0, 12.31),
    "made 6": (0.0, 0.0, 62.72, 0.0, 91.38, 92.97, 48.93, 65.42, 0.0),
}
"""Table 6.3's column of origin: the coefficients from which targets were made."""
