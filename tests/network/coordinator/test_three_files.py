"""Three clinics, each with a file in its own words, are one federation by a dictionary that came from REDCap."""

import logging

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from test_real_stations import SECRET, Hub

from hedgerow.data import Schema
from hedgerow.data.dictionary.redcap import from_redcap
from hedgerow.data.faults import values_refused
from hedgerow.errors import DataError
from hedgerow.network.coordinator.boarding import Agreed, read_board, verdict
from hedgerow.network.coordinator.hellos import CLOSED
from hedgerow.network.coordinator.states import Boarded
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.base import Base
from hedgerow.network.station.closed import Nothing, held_closed
from hedgerow.network.station.config import read_config
from hedgerow.network.station.data_section import open_records
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.station import Station
from hedgerow.study import load
from station_house import House

REDCAP = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label","Choices, Calculations, OR Slider Labels",\
"Field Note","Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max","Identifier?",\
"Branching Logic (Show field only if...)","Required Field?","Custom Alignment","Question Number (surveys only)",\
"Matrix Group Name","Matrix Ranking?","Field Annotation"
age,base,,text,"Age at admission",,,integer,18,110,,,,,,,,
sex,base,,radio,Sex,"0, female | 1, male",,,,,,,,,,,,
creatinine,lab,,text,"Serum creatinine",,mg/dL,number,0.2,20,,,,,,,,
smoking,base,,yesno,Smokes,,,,,,,,,,,,,
died,outcome,,yesno,"Died within a year",,,,,,,,,,,,,
"""
STATION = """
name = "{name}"
[coordinator]
name = "hub"
rail = "socket"
path = "rail.sock"
[guard]
approval = "automatic"
programs = [{{ name = "logistic_regression" }}]
disclosure = inf
[data]
name = "heart"
dictionary = "heart-failure@1.2.0"
source = "csv"
path = "local.csv"
"""
OWN = {
    "alpha": "",
    "beta": """
separator = ";"
decimal = ","
[data.columns]
age = "ALTER"
sex = { from = "GESCHL", codes = { w = "female", m = "male" } }
creatinine = { from = "KREA_UMOL", convert = "x / 88.42" }
smoking = "RAUCHER"
died = "TOD"
""",
    "gamma": """
separator = "\\t"
na_values = [-9]
[data.columns]
sex = { from = "gender", codes = { F = "female", f = "female", M = "male" } }
smoking = false
died = { from = "outcome", codes = { alive = "no", dead = "yes" } }
""",
}
STUDY = """
name = "{name}"
[data]
name = "heart"
dictionary = "{dictionary}"
[program]
name = "logistic_regression"
formula = "{formula}"
"""
AGE, ALL = "died ~ I((age - 60) / 10) + sex + creatinine", "died ~ I((age - 60) / 10) + smoking"


def records(name, n=90):
    rng = np.random.default_rng(sum(name.encode()))
    found = pd.DataFrame({"age": rng.integers(30, 91, n), "sex": rng.choice(["female", "male"], n)})
    found["creatinine"], found["smoking"] = rng.uniform(0.5, 4, n).round(2), rng.integers(0, 2, n)
    eta = 0.05 * (found.age - 60) + 0.5 * (found.sex == "male") + 0.6 * (found.creatinine - 1.5) - 0.3
    return found.assign(died=(rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int))


def written(name, folder):
    """The records as this clinic has them in its file."""
    one, sexes = records(name), {"alpha": "01", "beta": "wm", "gamma": "fM"}[name]
    one["sex"] = one.sex.map(dict(zip(["female", "male"], sexes, strict=True)))
    if name == "beta":
        one["creatinine"] = [f"{value * 88.42:.12f}".replace(".", ",") for value in one.creatinine]
        one.columns = ["ALTER", "GESCHL", "KREA_UMOL", "RAUCHER", "TOD"]
    if name == "gamma":
        one["creatinine"] = one.creatinine.astype(str).where(np.arange(len(one)) >= 10, " -9 ")  # ten are missing
        one = one.rename(columns={"sex": "gender", "died": "outcome"}).assign(outcome=one.died.map({0: "alive", 1: "dead"}))
        one.loc[3, "gender"] = one.gender[3].upper()  # a second code of one level
    one.to_csv(folder / "local.csv", sep={"alpha": ",", "beta": ";", "gamma": "\t"}[name], index=False)


class Clinics(House):
    """Stations that read their configuration and their file as a station that starts does."""

    def start(self, name, held=None):
        folder = self.path / name
        if not (folder / "station.toml").exists():
            folder.mkdir(parents=True)
            (folder / "station.toml").write_text(STATION.format(name=name) + OWN[name])
            (folder / "heart.toml").write_text(DICTIONARY.to_toml())
            written(name, folder)
        if name in self.stations:
            self.stations[name].base.close()
        config, base, closed = read_config(folder)[0], Base(folder / "station.sqlite"), 0
        how = {"answered": folder / "answered", "now": lambda: self.time}
        try:
            held = local_data(config, open_records(config.data, folder)[0], bytes(32))
        except DataError as error:
            logging.getLogger("hedgerow").error("%s", error)
            closed = values_refused(error)
            held, how = held_closed(config, base), how | {"runner": Nothing()}
        self.stations[name] = Station(config, held, self.keys[name], base, closed=closed, **how)
        self.rail.stations[name] = self.stations[name].receive
        return self.stations[name]


@pytest.fixture(scope="module", autouse=True)
def dictionary(tmp_path_factory):
    global DICTIONARY
    path = tmp_path_factory.mktemp("redcap") / "heart.csv"
    path.write_text(REDCAP)
    DICTIONARY = from_redcap(path, name="heart-failure", version="1.2.0")
    return DICTIONARY


@pytest.fixture
def hub(tmp_path, monkeypatch):
    import test_real_stations

    monkeypatch.setattr(test_real_stations, "House", Clinics)
    return Hub(tmp_path)


def study(hub, formula, name="death", more=""):
    """A study file beside the dictionary, submitted."""
    (hub.folder / "heart.toml").write_text(DICTIONARY.to_toml())
    text = STUDY.format(name=name, formula=formula, dictionary="heart-failure@1.2.0") + more
    (hub.folder / f"{name}.toml").write_text(text)
    return submit(hub.store, load(hub.folder / f"{name}.toml"))


def pooled(formula, *names):
    """Newton's method on the records of these clinics, before they were written to files."""
    found = pd.concat([records(name).iloc[10 if name == "gamma" and "creatinine" in formula else 0 :] for name in names])
    terms = {"I((age - 60) / 10)": (found.age - 60) / 10, "sex": found.sex == "male"}
    terms |= {"creatinine": found.creatinine, "smoking": found.smoking}
    wanted = [terms[term] for term in formula.split(" ~ ")[1].split(" + ")]
    X, y = np.column_stack([np.ones(len(found)), *wanted]).astype(float), found.died.to_numpy(float)
    beta = np.zeros(X.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-X @ beta))
        beta += np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (y - p))
    return beta


def coefficients(hub, id):
    return pd.read_csv(hub.folder / "runs" / id / "coefficients.csv")["coef"]


@pytest.mark.slow
@pytest.mark.parametrize("protection", ["", SECRET], ids=["plain", "secagg"])
def test_three_files_in_their_own_words_are_one_regression(hub, protection):
    id = study(hub, AGE, more=protection)
    kept = hub.go(id)
    assert kept.state == "finished", kept.reason
    assert_allclose(coefficients(hub, id), pooled(AGE, "alpha", "beta", "gamma"), rtol=1e-6 if protection else 1e-8)
    page = (hub.folder / "runs" / id / "report.html").read_text()
    assert f"heart-failure@1.2.0, digest {DICTIONARY.digest[:16]}" in page


@pytest.mark.slow
def test_a_typo_closes_one_station_alone_and_the_study_says_what_it_waits_for(hub, caplog):
    path = hub.house.path / "beta" / "local.csv"
    lines = path.read_text().splitlines()
    lines[12] = lines[12].replace(lines[12].split(";")[0], "5O", 1)
    path.write_text("\n".join(lines) + "\n")
    with caplog.at_level(logging.ERROR, "hedgerow"):
        hub.house.start("beta")
    assert "column 'age' has 1 of 90 values that are not numbers" in caplog.text
    assert "first in line 13" in caplog.text
    assert "5O" not in caplog.text
    assert not hub.house.stations["alpha"].closed
    id = study(hub, AGE)
    kept = hub.go(id, seconds=60)
    assert (kept.state, kept.reason) == ("boarding", "beta waits: its table is closed, about 5 values refused")
    told = b"".join(body for station, body in hub.house.rail.came if station == "beta")
    assert b"age" not in told
    written("beta", path.parent)
    hub.house.start("beta")
    assert hub.go(id).state == "finished"
    assert_allclose(coefficients(hub, id), pooled(AGE, "alpha", "beta", "gamma"), rtol=1e-8)


@pytest.mark.slow
def test_a_study_goes_on_without_the_station_that_has_no_such_column(hub):
    id = study(hub, ALL)
    kept = hub.go(id)
    assert kept.state == "finished", kept.reason
    assert_allclose(coefficients(hub, id), pooled(ALL, "alpha", "beta"), rtol=1e-8)
    said = [entry.sentence for entry in hub.store.history(id)]
    assert any("without gamma, which has no smoking" in one for one in said)
    assert not hub.house.stations["gamma"].submissions.all()  # it was asked nothing


def test_a_station_that_closes_after_all_agreed_is_waited_for_like_one_that_is_away(hub):
    station = hub.house.stations["beta"]
    station.closed = 7
    letter = hub.house.ask("board", [b"name = 'x'", b""], ["beta"])["beta"]
    one = read_board(letter, ("beta",), b"", hub.house.hub.public_identities["beta"], 0.0)
    assert (one.status, one.code) == ("away", CLOSED)
    agreed = Agreed("", {"alpha": ("alpha",), "beta": ("beta",)}, Schema(()), "hub", "0", 0.0)
    said = [Boarded("alpha", "approved", parties=("alpha",)), one]
    found = verdict(said, agreed, hub.config.limits, 1.0, 0.0)
    assert (found.state, found.reason) == ("wait", "beta waits: its table is closed")
    patient = hub.config.limits.model_copy(update={"least_stations": 1, "away_minutes": 0})
    assert verdict(said, agreed, patient, 1.0, 0.0).state == "ready"
