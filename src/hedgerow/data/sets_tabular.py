"""Small tables that are read from files: health, insurance, census, chemistry, fraud."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import icd9
from .download import Published
from .entry import CatalogueEntry, Parts, binary, category, csv, declare, integer, number, renamed

if TYPE_CHECKING:
    import pandas as pd

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

_ADULT_COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain "
    "capital_loss hours_per_week native_country income"
)
_EDUCATION = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors Masters "
    "Prof-school Doctorate"
)
_MARITAL = "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
_WORK = "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"
_OCCUPATION = (
    "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners Machine-op-inspct "
    "Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving"
)
_COUNTRY = (
    "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece "
    "Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico "
    "Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan Thailand "
    "Trinadad&Tobago United-States Vietnam Yugoslavia"
)


def _adult(train: Path, test: Path) -> Parts:
    read = csv(_income, header=None, names=_ADULT_COLUMNS.split(), skipinitialspace=True, comment="|")
    return read(train, test)


def _income(frame: pd.DataFrame) -> pd.DataFrame:
    frame["income_over_50k"] = frame.pop("income").str.startswith(">")  # test labels end with a full stop
    return frame


def _insurance(frame: pd.DataFrame) -> pd.DataFrame:
    frame["smoker"] = frame["smoker"] == "yes"
    return frame


def _haberman(frame: pd.DataFrame) -> pd.DataFrame:
    frame["died_within_5y"] = frame.pop("status") == 2
    return frame


def _coimbra(frame: pd.DataFrame) -> pd.DataFrame:
    frame["patient"] = frame.pop("Classification") == 2
    return frame


def _cardio(frame: pd.DataFrame) -> pd.DataFrame:
    frame["gender"] = frame["gender"].map({1: "woman", 2: "man"})
    return frame


def _plausible(frame: pd.DataFrame) -> pd.DataFrame:
    high, low = frame["ap_hi"], frame["ap_lo"]
    return frame[(high > 60) & (high < 250) & (low > 30) & (low < 160)]


def _diagnoses(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    first = frame.drop_duplicates("patient_nbr")
    code = icd9.three_digits(first["diag_1"])
    groups = {one: icd9.group_of(one) for one in code.unique()}
    return pd.DataFrame(
        {"age": first["age"], "code": code, "group": code.map(groups), "readmitted_30d": first["readmitted"] == "<30"}
    )


_GONE = (11, 13, 14, 19, 20, 21)
"""Codes of stays that ended by death or at a hospice."""
_SPECIALTIES = {
    "InternalMedicine": "Internal medicine",
    "Family/GeneralPractice": "General practice",
    "Emergency/Trauma": "Emergency",
    "Cardiology": "Cardiology",
    "Surgery-General": "General surgery",
    "Orthopedics": "Orthopaedics",
    "Orthopedics-Reconstructive": "Orthopaedics, reconstructive",
    "Radiologist": "Radiology",
}


def _first_stays(frame: pd.DataFrame) -> pd.DataFrame:
    """The first stay of each patient in eight specialties, if he left it alive and for no hospice."""
    import pandas as pd

    first = frame.sort_values("encounter_id").drop_duplicates("patient_nbr")
    alive = ~first["discharge_disposition_id"].isin(_GONE)
    first = first[first["medical_specialty"].isin(list(_SPECIALTIES)) & alive]
    races = {"Caucasian": "white", "AfricanAmerican": "black", "?": None}
    return pd.DataFrame(
        {
            "specialty": first["medical_specialty"].map(_SPECIALTIES),
            "age": first["age"].str.extract(r"(\d+)")[0].astype(float) + 5,
            "woman": first["gender"].map({"Female": 1.0, "Male": 0.0}),
            "race": [races.get(one, "other") for one in first["race"]],
            "earlier_stays": first["number_inpatient"].clip(0, 5),
            "days": first["time_in_hospital"],
            "drugs": first["num_medications"],
            "hba1c_measured": first["A1Cresult"] != "None",
            "weight_recorded": first["weight"] != "?",
            "readmitted": first["readmitted"] == "<30",
        }
    )


_PAYMENT = (
    integer("time", 0, 172_800, "s", description="since the first payment"),
    *(number(f"v{i}", -125, 125, description="principal component") for i in range(1, 29)),
    number("amount", 0, 30_000, "euro"),
    binary("fraud", role="target"),
)

TABULAR = {
    "adult": CatalogueEntry(
        "Adult (census income): 32561 people, 16281 for testing, whether they earn over 50000 dollars a year; R. Kohavi "
        "and B. Becker 1996, UCI 2, CC BY 4.0.",
        declare(
            integer("age", 17, 90, "years"),
            category("workclass", _WORK),
            integer("fnlwgt", 0, 2_000_000, role="ignore", description="people whom the record stands for"),
            category("education", _EDUCATION),
            integer("education_num", 1, 16),
            category("marital_status", _MARITAL),
            category("occupation", _OCCUPATION),
            category("relationship", "Husband Not-in-family Other-relative Own-child Unmarried Wife"),
            category("race", "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
            category("sex", "Female Male"),
            integer("capital_gain", 0, 99_999, "dollars"),
            integer("capital_loss", 0, 5_000, "dollars"),
            integer("hours_per_week", 1, 99, "hours"),
            category("native_country", _COUNTRY),
            binary("income_over_50k", role="target"),
        ),
        _adult,
        ("tabular/adult.data.gz", "tabular/adult.test.gz"),
        (
            Published(f"{_UCI}/adult/adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
            Published(f"{_UCI}/adult/adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        ),
    ),
    "insurance": CatalogueEntry(
        "Medical Cost Personal: 1338 insured people and what they were charged in a year; B. Lantz, Machine Learning "
        "with R; ODbL.",
        declare(
            integer("age", 18, 65, "years"),
            category("sex", "female male"),
            number("bmi", 10, 60, "kg/m²"),
            integer("children", 0, 10),
            binary("smoker"),
            category("region", "northeast northwest southeast southwest"),
            number("charges", 0, 100_000, "dollars", role="target"),
        ),
        csv(_insurance),
        ("tabular/insurance.csv",),
    ),
    "city_health": CatalogueEntry(
        "City health: 53 small cities, doctors, hospitals, income, density and deaths; G. S. Thomas, Life in America's "
        "Small Cities, in Brase and Brase, Understandable Statistics (mlr07); licence not stated.",
        declare(
            number("doctors", 0, 500, "per 100 000 residents"),
            number("hospitals", 0, 2_500, "per 100 000 residents", description="hospital availability"),
            number("income", 0, 30, "1000 dollars", description="per person in a year"),
            number("density", 0, 1_000, "people per square mile"),
            number("deaths", 0, 20, "per 1000 residents", role="target"),
        ),
        csv(renamed({"X1": "deaths", "X2": "doctors", "X3": "hospitals", "X4": "income", "X5": "density"})),
        ("tabular/city_health_mlr07.csv",),
    ),
    "casp": CatalogueEntry(
        "Physicochemical Properties of Protein Tertiary Structure: 45730 decoys and their distance from the native "
        "structure; P. S. Rana, UCI 265, CC BY 4.0.",
        declare(
            number("rmsd", 0, 25, "Å", role="target", description="root mean square deviation"),
            number("f1", 0, 50_000, "Å²", description="total surface area"),
            number("f2", 0, 20_000, "Å²", description="non-polar exposed area"),
            number("f3", 0, 1, description="fraction of the area that is exposed and non-polar"),
            number("f4", 0, 500, description="fractional area of the exposed non-polar part of residues"),
            number("f5", 0, 7_000_000, description="exposed area weighted by molecular mass"),
            number("f6", 0, 1_000, description="average deviation from the standard exposed area of residues"),
            number("f7", 0, 150_000, description="Euclidean distance"),
            integer("f8", 0, 400, description="secondary structure penalty"),
            number("f9", 0, 100, description="spatial distribution constraints"),
        ),
        csv(),
        ("tabular/CASP.csv.gz",),
    ),
    "haberman": CatalogueEntry(
        "Haberman's Survival: 306 patients after breast-cancer surgery; S. Haberman 1976, UCI 43, CC BY 4.0.",
        declare(
            integer("age", 18, 100, "years"),
            integer("operation_year", 58, 70, "years since 1900"),
            integer("nodes_detected", 0, 60, description="positive axillary nodes"),
            binary("died_within_5y", role="target"),
        ),
        csv(_haberman, header=None, names=["age", "operation_year", "nodes_detected", "status"]),
        ("tabular/haberman.csv",),
        (Published(f"{_UCI}/haberman/haberman.data", "b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2"),),
    ),
    "coimbra": CatalogueEntry(
        "Breast Cancer Coimbra: 116 women, 64 of them patients, nine measurements of blood and body; M. Patrício et al. "
        "2018, UCI 451, CC BY 4.0.",
        declare(
            integer("age", 18, 100, "years"),
            number("bmi", 10, 60, "kg/m²"),
            number("glucose", 30, 400, "mg/dL"),
            number("insulin", 0, 100, "µU/mL"),
            number("homa", 0, 50, description="insulin resistance"),
            number("leptin", 0, 150, "ng/mL"),
            number("adiponectin", 0, 60, "µg/mL"),
            number("resistin", 0, 120, "ng/mL"),
            number("mcp_1", 0, 2_500, "pg/dL"),
            binary("patient", role="target"),
        ),
        csv(_coimbra),
        ("tabular/breast_cancer_coimbra.csv",),
    ),
    "cardio": CatalogueEntry(
        "Cardiovascular Disease: 70000 examined people, half of them with the disease; impossible blood pressures are "
        "clipped; S. Ulianova, Kaggle; licence not stated.",
        declare(
            integer("id", 0, 99_999, role="id"),
            integer("age", 9_000, 30_000, "days"),
            category("gender", "woman man"),
            integer("height", 50, 250, "cm"),
            number("weight", 5, 250, "kg"),
            integer("ap_hi", 60, 260, "mmHg", clip=True, description="systolic blood pressure"),
            integer("ap_lo", 30, 180, "mmHg", clip=True, description="diastolic blood pressure"),
            integer("cholesterol", 1, 3, description="1 normal, 2 above, 3 well above"),
            integer("gluc", 1, 3, description="1 normal, 2 above, 3 well above"),
            binary("smoke"),
            binary("alco"),
            binary("active"),
            binary("cardio", role="target"),
        ),
        csv(_cardio, sep=";"),
        ("tabular/cardio_train.csv.gz",),
    ),
    "cardio_plausible": CatalogueEntry(
        "Cardiovascular Disease, as cardio, without records whose blood pressures are impossible: 68754 of 70000 people, "
        "systolic above 60 and below 250, diastolic above 30 and below 160 mmHg; S. Ulianova, Kaggle; licence not stated.",
        declare(
            integer("id", 0, 99_999, role="id"),
            integer("age", 9_000, 30_000, "days"),
            integer("gender", 1, 2, description="as published: 1 woman, 2 man"),
            integer("height", 50, 250, "cm"),
            number("weight", 5, 250, "kg"),
            binary("smoke"),
            integer("ap_hi", 60, 250, "mmHg", description="systolic blood pressure"),
            integer("ap_lo", 30, 160, "mmHg", description="diastolic blood pressure"),
            integer("cholesterol", 1, 3, description="1 normal, 2 above, 3 well above"),
            integer("gluc", 1, 3, description="1 normal, 2 above, 3 well above"),
            binary("alco"),
            binary("active"),
            binary("cardio", role="target"),
        ),
        csv(_plausible, sep=";"),
        ("tabular/cardio_train.csv.gz",),
    ),
    "diagnoses": CatalogueEntry(
        "First diagnoses of 71518 patients: the first stay of each in Diabetes 130-US Hospitals 1999-2008, by three-digit "
        "ICD-9 code and by chapter; B. Strack et al. 2014, UCI 296, CC BY 4.0.",
        declare(
            category("age", [f"[{low}-{low + 10})" for low in range(0, 100, 10)]),
            category("code", icd9.CODES, description="primary diagnosis, ICD-9 without what follows the point"),
            category("group", icd9.GROUPS, description="chapter of the diagnosis, diabetes apart"),
            binary("readmitted_30d", role="target"),
        ),
        csv(_diagnoses, keep_default_na=False, dtype={"diag_1": str}),
        ("tabular/diabetic_data.csv.gz",),
    ),
    "first_stays": CatalogueEntry(
        "First stays of 29414 patients with diabetes, who left one of eight specialties alive, and whether they came back "
        "within 30 days; Diabetes 130-US Hospitals 1999-2008, B. Strack et al. 2014, UCI 296, CC BY 4.0.",
        declare(
            category("specialty", tuple(_SPECIALTIES.values()), role="ignore", description="of the physician who admitted"),
            number("age", 0, 100, "years", description="middle of ten years"),
            binary("woman", optional=True),
            category("race", "white black other", optional=True),
            integer("earlier_stays", 0, 5, description="inpatient stays in the year before; five are five or more"),
            integer("days", 1, 14, "days", description="in hospital"),
            integer("drugs", 0, 100, description="different drugs given"),
            binary("hba1c_measured"),
            binary("weight_recorded"),
            binary("readmitted", role="target", description="within 30 days"),
        ),
        csv(_first_stays, keep_default_na=False),
        ("tabular/diabetic_data.csv.gz",),
        selection=(
            ("Patients, first stay of each", 71_518, "another specialty, or none recorded", 41_521),
            ("In the eight specialties", 29_997, "died, or went to a hospice", 583),
            ("Left hospital alive", 29_414, "", 0),
        ),
    ),
    "credit_card": CatalogueEntry(
        "Credit card fraud: 284807 card payments of two days in 2013, of which 492 were fraud; Worldline and ULB Machine "
        "Learning Group, ODbL.",
        declare(*_PAYMENT),
        csv(renamed({"Class": "fraud"})),
        ("tabular/creditcard.csv",),
        (
            Published(
                "https://storage.googleapis.com/download.tensorflow.org/data/creditcard.csv",
                "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
            ),
        ),
    ),
    "credit_card_subset": CatalogueEntry(
        "Credit card fraud, a subset that was gathered from published samples: 34267 of 284807 payments with all 492 frauds "
        "(1.4 % instead of 0.17 %; column `part` tells how a payment was sampled); Worldline and ULB Machine Learning "
        "Group, ODbL.",
        declare(*_PAYMENT, category("part", "fraud head_or_tail random_full random_partial", role="ignore")),
        csv(renamed({"Class": "fraud"})),
        ("tabular/creditcard_subset_34267.csv.gz",),
    ),
}
