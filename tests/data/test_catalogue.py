"""Catalogued data sets: counts as published, ranges declared wide enough, sets that are absent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hedgerow.data import load, names
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.errors import MissingData, MissingExtra, UnknownDataset

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")

RECORDS = {  # training and test records
    "adult": (32561, 16281),
    "breast_cancer": (569, 0),
    "cardio": (70000, 0),
    "cardio_plausible": (68754, 0),
    "casp": (45730, 0),
    "cifar10": (50000, 10000),
    "city_health": (53, 0),
    "coimbra": (116, 0),
    "contacts": (1500000, 0),
    "credit_card": (284807, 0),
    "credit_card_subset": (34267, 0),
    "diabetes": (442, 0),
    "diabetic": (101766, 0),
    "diagnoses": (71518, 0),
    "digits": (1797, 0),
    "fair": (6366, 0),
    "fashion_mnist": (60000, 10000),
    "first_stays": (29414, 0),
    "haberman": (306, 0),
    "gbsg2": (686, 0),
    "har": (7352, 2947),
    "heart_failure": (299, 0),
    "hie": (20190, 0),
    "insurance": (1338, 0),
    "iris": (150, 0),
    "lending_club_119987": (119938, 0),
    "lending_club_2007_2011": (42445, 0),
    "mnist": (60000, 10000),
    "noise_experiment": (100, 0),
    "pneumoniamnist": (4708, 624),
    "rossi": (432, 0),
    "two_normals": (1000, 1000),
}
BUNDLED = sorted(name for name, entry in CATALOGUE.items() if not entry.files)
SMALL = ("city_health", "coimbra", "haberman", "insurance")
LONG = pytest.param("contacts", marks=pytest.mark.slow)
IN_FOLDER = [
    pytest.param(name, marks=[needs_data, *([] if name in SMALL else [pytest.mark.slow])])
    for name in sorted(set(CATALOGUE) - set(BUNDLED))
]


def test_every_set_has_a_sentence_and_counts():
    assert set(names()) == set(RECORDS)
    assert all(sentence.endswith(".") for sentence in names().values())


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_numeric_column_declares_a_closed_range(name):
    schema = CATALOGUE[name].schema
    assert schema.target
    assert schema.features
    for column in schema:
        assert column.kind == "category" or column.absolute is not None


@pytest.mark.parametrize("name", [*(name for name in BUNDLED if name != "contacts"), LONG, *IN_FOLDER])
def test_records_are_as_published_and_inside_their_ranges(name):
    if name == "credit_card" and not list(DATA.rglob("creditcard.csv")):
        pytest.skip("the folder has a subset of these payments alone")
    table = load(name, data_dir=DATA)  # `Schema.admit` refuses what lies outside
    published = (20000, 4000) if "This is a subset" in table.source else RECORDS[name]
    assert (len(table), len(table.test or ())) == published
    assert table.schema == CATALOGUE[name].schema
    assert table.name == name


def test_malignant_is_one():
    assert load("breast_cancer")["malignant"].sum() == 212


def test_the_bundled_copy_of_breast_cancer_is_that_of_scikit_learn_to_the_bit():
    frame = pytest.importorskip("sklearn.datasets").load_breast_cancer(as_frame=True).frame
    table = load("breast_cancer")
    for name in frame.columns.drop("target"):
        assert_array_equal(table[name.replace(" ", "_")], frame[name])
    assert_array_equal(table["malignant"], 1 - frame["target"])


def test_heart_failure_has_the_published_counts():
    assert load("heart_failure")["death_event"].sum() == 96


def test_digits_are_compact_images():
    digits = load("digits")
    assert (digits["image"].dtype, digits["image"].shape) == (np.uint8, (1797, 64))
    assert digits.schema["digit"].levels[digits["digit"][0]] == "0"


@needs_data
def test_recoded_targets_have_the_published_counts():
    assert load("haberman", data_dir=DATA)["died_within_5y"].sum() == 81
    assert load("coimbra", data_dir=DATA)["patient"].sum() == 64
    assert load("insurance", data_dir=DATA)["smoker"].sum() == 274


@needs_data
@pytest.mark.slow
def test_recoded_targets_of_large_sets_have_the_published_counts():
    adult = load("adult", data_dir=DATA)
    assert (adult["income_over_50k"].sum(), adult.test["income_over_50k"].sum()) == (7841, 3846)
    assert load("credit_card_subset", data_dir=DATA)["fraud"].sum() == 492
    assert load("diabetic", data_dir=DATA)["readmitted_30d"].sum() == 11357
    assert load("lending_club_2007_2011", data_dir=DATA).source.endswith("90 records with missing values were dropped.")
    assert_array_equal(np.bincount(load("mnist", data_dir=DATA)["digit"])[:3], [5923, 6742, 5958])


@needs_data
@pytest.mark.slow
def test_cifar10_is_decoded_to_the_known_pixels():
    cifar = load("cifar10", data_dir=DATA)
    assert_array_equal(cifar["image"][0, :, 0, 0], [59, 62, 63])
    assert_array_equal(cifar.test["image"][0, :, 0, 0], [158, 112, 49])


@needs_data
@pytest.mark.slow
def test_the_activity_test_part_has_other_volunteers():
    har = load("har", data_dir=DATA)
    assert len(set(har["subject"])) == 21
    assert not set(har["subject"]) & set(har.test["subject"])


def test_files_may_lie_directly_in_the_folder(tmp_path, monkeypatch):
    (tmp_path / "haberman.csv").write_text("30,64,1,1\n31,65,0,2\n")
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    assert_array_equal(load("haberman")["died_within_5y"], [0, 1])


def test_a_path_is_read(tmp_path):
    (tmp_path / "mine.csv").write_text("x\n1\n")
    assert load(tmp_path / "mine.csv").name == "mine"


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownDataset, match="Did you mean 'breast_cancer'"):
        load("breast_cancr")


def test_an_absent_set_says_what_it_is_and_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    with pytest.raises(MissingData, match="none is named") as refusal:
        load("pneumoniamnist")
    assert "Kermany" in refusal.value.remedy
    assert "--data-dir" in refusal.value.remedy
    with pytest.raises(MissingData, match=r"needs cifar10/cifar-10-binary"):
        load("cifar10", data_dir=tmp_path)


def test_a_bundled_set_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra, match="scikit-learn"):
        load("digits")
    monkeypatch.setitem(sys.modules, "lifelines", None)
    with pytest.raises(MissingExtra, match=r"comes with lifelines[\s\S]*pip install"):
        load("gbsg2")
