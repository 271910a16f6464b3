"""A station's file: everything that is wrong with it is said at once, and nothing secret is."""

from datetime import UTC, datetime

import pytest

from hedgerow.errors import ConfigInvalid
from hedgerow.network.station.config import StorePolicy, parse_config, read_config, read_policies
from hedgerow.network.station.hours import Hours

WHOLE = """
name = "alpha"
[coordinator]
name = "hub"
address = "hub.example.org:8443"
[data]
name = "heart"
source = "csv"
path = "heart.csv"
[data.columns.age]
range = [18, 110]
[data.columns.sick]
kind = "binary"
[guard]
approval = "automatic"
programs = [{ name = "logistic_regression", version = "0.1.*" }]
columns = ["age"]
hours = ["Mon-Fri 08:00-18:00", "Sat 10:00-12:00"]
timezone = "Europe/Amsterdam"
require = { hidden_rows = true, noise = "shares", noise_multiplier = 1.0 }
limits = { questions_per_minute = 60, bytes_out = 1000000 }
[guard.budget]
epsilon = 4
delta = 1e-6
trust = "parties"
[guard.study_budget]
epsilon = 1
delta = 1e-6
"""


def test_a_whole_file_is_read(tmp_path):
    (tmp_path / "station.toml").write_text(WHOLE)
    config, folder = read_config(tmp_path)
    assert (config.name, folder, config.allowed) == ("alpha", tmp_path, frozenset({"age"}))
    assert config.guard.budget.budget().unit == "record"
    assert config.guard.budget.budget().filter is None
    held = WHOLE.replace('trust = "parties"', 'trust = "parties"\nfilter = "gdp"')
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "station.toml").write_text(held)
    assert read_config(tmp_path / "held")[0].guard.budget.budget().filter == "gdp"
    assert read_config(tmp_path / "station.toml")[0] == config


def test_every_problem_is_told_at_once_with_the_nearest_known_key():
    wrong = {
        "name": "a b",
        "coordinator": {"name": "hub", "rail": "grpc", "adress": "x:1"},
        "data": {"name": "d", "source": "csv", "path": "x.csv", "columns": {"age": {"rang": [1, 2]}}},
        "guard": {
            "aproval": "ask",
            "hours": ["whenever"],
            "timezone": "Mars/Olympus",
            "budget": {"epsilon": -1, "delta": 1e-6},
        },
    }
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(wrong)
    said = caught.value.remedy
    for word in ("'a b'", "'address'", "'range'", "'approval'", "whenever", "Europe/Amsterdam", "epsilon must be positive"):
        assert word in said


BASE = {"name": "a", "coordinator": {"name": "hub", "address": "h:1"}}
DATA = {"name": "d", "source": "csv", "path": "x.csv", "columns": {"age": {}, "sick": {"kind": "binary"}}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guard": {"approval": "automatic"}}, "list of programs"),
        ({"guard": {"columns": ["agee"]}}, "Did you mean 'age'"),
        ({"guard": {"require": {"noise_multiplier": 1.0}}}, "who adds it"),
        ({"stores": {"by": "ag"}}, "Did you mean 'age'"),
        ({"name": "hub"}, "two holders"),
        ({"coordinator": {"name": "hub", "rail": "socket", "address": "h:1"}}, "path of a socket"),
        ({"guard": {"programs": [{"name": "x", "code": "md5:0"}]}}, "guard.programs.0.code"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, said):
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(BASE | {"data": DATA} | change)
    assert said in caught.value.remedy


def test_a_secret_in_a_wrong_place_is_not_repeated():
    data = DATA | {"source": "sql", "path": None, "url": "postgresql://me:hunter2@db/x", "query": "select 1"}
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(BASE | {"data": data})
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_toml_is_said_so(tmp_path):
    with pytest.raises(ConfigInvalid, match="does not exist"):
        read_config(tmp_path)
    (tmp_path / "station.toml").write_text("name =")
    with pytest.raises(ConfigInvalid, match="not a TOML file"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("Mon-Fri 08:00-18:00", "2026-03-02 08:00", "2026-03-02 18:00"),
        ("Mon-Fri 8:00-18:00", "2026-03-06 17:59", "2026-03-07 09:00"),
        ("Sat-Mon 00:00-24:00", "2026-03-01 23:59", "2026-03-03 00:00"),
        ("Fri 22:00-02:00", "2026-03-07 01:59", "2026-03-06 02:00"),
    ],
)
def test_hours_hold_from_their_start_to_before_their_end(text, inside, outside):
    hours = Hours.read(text)
    assert hours.holds(datetime.fromisoformat(inside).replace(tzinfo=UTC))
    assert not hours.holds(datetime.fromisoformat(outside).replace(tzinfo=UTC))


def test_policies_of_stores_are_read_or_refused_by_line(tmp_path):
    path = tmp_path / "policies.csv"
    path.write_text("store,epsilon,allow\n7,0.5,yes\n8,,no\n")
    assert read_policies(path) == {"7": StorePolicy(0.5), "8": StorePolicy(allow=False)}
    path.write_text("store,epsilon,allow\n7,-1,yes\n8,,perhaps\n8,1,\n8,1,\n")
    with pytest.raises(ConfigInvalid) as caught:
        read_policies(path)
    assert [line.split(":")[0] for line in caught.value.remedy.splitlines()] == ["line 2", "line 3", "line 5"]
