"""Wide tables that are read from a data folder: hospital readmission and two Lending Club tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entry import CatalogueEntry, binary, category, csv, declare, integer, number

if TYPE_CHECKING:
    import pandas as pd

_DRUGS = (
    "metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide glyburide tolbutamide "
    "pioglitazone rosiglitazone acarbose miglitol troglitazone tolazamide examide citoglipton insulin "
    "glyburide_metformin glipizide_metformin glimepiride_pioglitazone metformin_rosiglitazone metformin_pioglitazone"
)
_STATES = (
    "AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV NY OH OK OR "
    "PA RI SC SD TN TX UT VA VT WA WI WV WY"
)
_PURPOSES = (
    "car credit_card debt_consolidation educational home_improvement house major_purchase medical moving other "
    "renewable_energy small_business vacation wedding"
)
_EMPLOYED = (
    "n/a",
    "< 1 year",
    "1 year",
    *(f"{years} years" for years in range(2, 10)),
    "10+ years",
)
_GRADES = "A B C D E F G"
_GIVES_RATE_AWAY = "decided together with the interest rate"
_AFTERWARDS = "known only after the loan"


def _numerals(last: int) -> list[str]:
    return [str(number) for number in range(1, last + 1)]


def _readmission(frame: pd.DataFrame) -> pd.DataFrame:
    frame["diabetesMed"] = frame["diabetesMed"] == "Yes"
    frame["change"] = frame["change"] == "Ch"
    frame["readmitted_30d"] = frame["readmitted"] == "<30"
    return frame


def _loans_2007_2011(frame: pd.DataFrame) -> pd.DataFrame:
    frame["emp_length"] = frame["emp_length"].fillna("n/a")
    frame["issue_year"] = frame["issue_d"].str[:4]
    frame["charged_off"] = frame["loan_status"].str.endswith("Charged Off")
    return frame


def _loans_119987(frame: pd.DataFrame) -> pd.DataFrame:
    frame["term"] = frame["term"].str.removesuffix(" months")
    frame["defaulted"] = frame["outcome"] == "default"
    mistaken = (frame["int_rate_source"] == "derived") & (frame["int_rate"] < 5.3)
    return frame[~mistaken]


LARGE = {
    "diabetic": CatalogueEntry(
        "Diabetes 130-US Hospitals 1999-2008: 101766 stays of 71518 patients and whether they were readmitted within 30 "
        "days; B. Strack et al. 2014, UCI 296, CC BY 4.0.",
        declare(
            integer("encounter_id", 0, 1_000_000_000, role="id"),
            integer("patient_nbr", 0, 1_000_000_000, role="id"),
            category("race", "? AfricanAmerican Asian Caucasian Hispanic Other"),
            category("gender", "Female Male Unknown/Invalid"),
            category("age", [f"[{low}-{low + 10})" for low in range(0, 100, 10)]),
            category("admission_type_id", _numerals(8)),
            category("discharge_disposition_id", _numerals(30)),
            category("admission_source_id", _numerals(26)),
            category("payer_code", "? BC CH CM CP DM FR HM MC MD MP OG OT PO SI SP UN WC"),
            integer("time_in_hospital", 1, 14, "days"),
            integer("num_lab_procedures", 0, 150),
            integer("num_procedures", 0, 10),
            integer("num_medications", 0, 100),
            integer("number_outpatient", 0, 100, description="visits in the year before"),
            integer("number_emergency", 0, 100, description="visits in the year before"),
            integer("number_inpatient", 0, 50, description="visits in the year before"),
            integer("number_diagnoses", 1, 16),
            category("max_glu_serum", "None Norm >200 >300"),
            category("a1cresult", "None Norm >7 >8"),
            *(category(drug, "No Down Steady Up") for drug in _DRUGS.split()),
            binary("change", description="diabetic medication was changed"),
            binary("diabetesmed", description="any diabetic medication was prescribed"),
            category("readmitted", "NO >30 <30", role="ignore", description="as published"),
            binary("readmitted_30d", role="target"),
        ),
        csv(_readmission, keep_default_na=False),
        ("tabular/diabetic_data.csv.gz",),
    ),
    "lending_club_2007_2011": CatalogueEntry(
        "Lending Club 2007 to 2011: 42535 loans, all that were issued, with the interest rate; LendingClub public loan "
        "statistics; LendingClub terms.",
        declare(
            number("loan_amnt", 500, 40_000, "dollars"),
            category("term", "36 60"),
            number("int_rate", 0, 0.36, role="target", description="yearly, as a fraction"),
            number("installment", 0, 1_500, "dollars", role="ignore", description=_GIVES_RATE_AWAY),
            category("grade", _GRADES, role="ignore", description=_GIVES_RATE_AWAY),
            category(
                "sub_grade",
                [f"{grade}{step}" for grade in _GRADES.split() for step in range(1, 6)],
                role="ignore",
                description=_GIVES_RATE_AWAY,
            ),
            category("emp_length", _EMPLOYED),
            category("home_ownership", "MORTGAGE NONE OTHER OWN RENT"),
            number("annual_inc", 0, 10_000_000, "dollars"),
            category("verification_status", ("Not Verified", "Source Verified", "Verified")),
            category("issue_year", "2007 2008 2009 2010 2011"),
            category("purpose", _PURPOSES),
            category("addr_state", _STATES),
            number("dti", 0, 40, "%", description="debt payments over income"),
            integer("delinq_2yrs", 0, 50),
            integer("inq_last_6mths", 0, 50),
            integer("open_acc", 0, 100),
            integer("pub_rec", 0, 20),
            number("revol_bal", 0, 2_000_000, "dollars"),
            number("revol_util", 0, 2, description="share of the revolving credit in use"),
            integer("total_acc", 0, 200),
            binary("charged_off", role="ignore", description=_AFTERWARDS),
        ),
        csv(_loans_2007_2011),
        ("tabular/lendingclub_2007_2011.csv.gz",),
        missing="drop",
    ),
    "lending_club_119987": CatalogueEntry(
        "Lending Club, finished loans: 119938 of 119987 loans (49 whose derived interest rate is mistaken are dropped); "
        "P. Bruce, A. Bruce and P. Gedeck, Practical Statistics for Data Scientists, from LendingClub; LendingClub "
        "terms.",
        declare(
            number("loan_amnt", 500, 40_000, "dollars"),
            category("term", "36 60"),
            number("annual_inc", 0, 10_000_000, "dollars"),
            number("dti", 0, 40, "%", description="debt payments over income"),
            number("payment_inc_ratio", 0, 100, "%", role="ignore", description=_GIVES_RATE_AWAY),
            number("revol_bal", 0, 2_000_000, "dollars"),
            number("revol_util", 0, 200, "%", description="share of the revolving credit in use"),
            category("purpose", _PURPOSES),
            category("home_ownership", "MORTGAGE OTHER OWN RENT"),
            binary("delinq_2yrs_zero"),
            binary("pub_rec_zero"),
            integer("open_acc", 0, 100),
            number("grade", 0, 7, role="ignore", description=_GIVES_RATE_AWAY),
            integer("emp_length", 0, 11, "years"),
            number("int_rate", 0, 36, "%", role="target", description="yearly; see int_rate_source"),
            category("int_rate_source", "listed derived", role="ignore", description="derived: from the annuity formula"),
            binary("defaulted", role="ignore", description=_AFTERWARDS),
        ),
        csv(_loans_119987),
        ("tabular/lendingclub_119987.csv.gz",),
    ),
}
