"""Files of owners: all problems at once with the nearest key, rows of a CSV file, and exactly one source of knowledge."""

import pytest

from hedgerow.core.toml import to_toml
from hedgerow.errors import StudyInvalid
from hedgerow.study.plans.owners_file import MOST_TOLD, load_owners, parse_owners

MODEL = {"loss": "linear", "inputs": 10, "rounds": 100}
PILOT = {"residual": 0.049, "amplification": 0.378, "bias": 7.5e-5}
HARBOUR = {"records": 40000, "epsilon": [0.2, 10.0], "cost": 1.0}
VALUE = {"per_fitness": 4e5}


def file_of(**changes):
    return {"model": MODEL, "pilot": PILOT, "value": VALUE, "owners": {"harbour": HARBOUR}} | changes


def told(found):
    with pytest.raises(StudyInvalid) as caught:
        parse_owners(found)
    return caught.value.remedy


def test_an_owner_offers_a_range_or_exactly_one_epsilon():
    owners = {"a": HARBOUR, "b": HARBOUR | {"epsilon": 1.5}, "c": HARBOUR | {"epsilon": [0.7, 0.7]}}
    offers = parse_owners(file_of(owners=owners)).offers()
    assert [offer.epsilon for offer in offers.values()] == [(0.2, 10.0), (1.5, 1.5), (0.7, 0.7)]
    assert (offers["a"].records, offers["a"].cost) == (40000, 1.0)


def test_all_problems_are_told_at_once_each_with_the_nearest_key():
    owners = {"harbour": {"recrods": 3, "epsilon": [2.0, 1.0], "cost": -1}, "mill": {"records": 0, "epsilon": "much"}}
    said = told(file_of(owners=owners, model=MODEL | {"step": 0.0, "boks": 1.0}, titel="x"))
    assert "unknown key 'titel'. Did you mean 'title'?" in said
    assert "unknown key 'model.boks'. Did you mean 'box'" in said
    assert "unknown key 'owners.harbour.recrods'. Did you mean 'records'" in said
    assert "owners.harbour.records: Field required" in said
    assert "owners.harbour.epsilon: give two finite numbers above zero, the smaller first" in said
    for key in ("owners.harbour.cost", "owners.mill.records", "owners.mill.epsilon", "model.step"):
        assert f"{key}: " in said


@pytest.mark.parametrize(
    ("pilot", "words"),
    [
        ({}, "nothing does"),
        ({"epsilon": 0.1, "bounds": {"curvature": [0.1, 2.0], "least": 0.05}}, "epsilon and bounds do"),
        ({"residual": 0.1}, "amplification and bias, or curvature and best"),
        ({"residual": 0.1, "curvature": [0.1, 0.2], "best": [1.0]}, "best has 1 numbers and curvature 2"),
        ({"bounds": {"curvature": [2.0, 0.1], "least": 0.05}}, "the smaller first"),
        ({"data": "public.csv"}, "needs a study"),
        ({"epsilon": 0.1}, "needs a study"),
    ],
)
def test_one_way_says_what_is_known(pilot, words):
    assert words in told(file_of(pilot=pilot))


def test_prices_need_costs_and_costs_need_a_value():
    free = {"records": 10, "epsilon": 1.0}
    assert "harbour declare no cost" in told(file_of(owners={"harbour": free}))
    assert "costs are of use beside" in told({key: part for key, part in file_of().items() if key != "value"})
    assert not parse_owners({"model": MODEL, "pilot": PILOT, "owners": {"harbour": free}}).priced


def test_a_study_or_a_model_says_what_is_asked():
    assert "one of the two" in told(file_of(study="lending.toml"))
    assert "one of the two" in told(file_of(model=None))


def test_many_problems_are_counted():
    said = told(file_of(owners={f"owner {k}": {"records": 0, "epsilon": 1.0, "cost": 1.0} for k in range(1000)})).splitlines()
    assert len(said) == MOST_TOLD + 1
    assert said[-1] == f"and {1000 - MOST_TOLD} more."


def written(folder, rows, **changes):
    (folder / "owners.csv").write_text(rows)
    path = folder / "plan.toml"
    path.write_text(to_toml({"owners": "owners.csv", "model": MODEL, "pilot": PILOT, "value": VALUE} | changes))
    return path


def test_owners_can_be_rows_of_a_file(tmp_path):
    found = load_owners(
        written(tmp_path, "owner,records,epsilon_low,epsilon_high,cost\nharbour,40000,0.2,10,1\n\nmill,20,1,1,2\n")
    )
    assert list(found.owners) == ["harbour", "mill"]
    assert found.owners["harbour"] == parse_owners(file_of()).owners["harbour"]


def test_the_digest_is_of_both_files(tmp_path):
    rows = "owner,records,epsilon_low,epsilon_high,cost\nharbour,40000,0.2,10,1\n"
    digests = {load_owners(written(tmp_path, rows.replace("40000", n))).digest for n in ("40000", "40001", "40000")}
    assert len(digests) == 2


def test_problems_of_rows_are_told_with_those_of_the_file(tmp_path):
    rows = "owner,records,epsilon_low,epsilon_high,cost\nharbour,40000,0.2,10,1\nharbour,3,1,1,1\nmill,5,1\nquay,x,1,1,1\n"
    with pytest.raises(StudyInvalid) as caught:
        load_owners(written(tmp_path, rows, titel="x"))
    said = caught.value.remedy
    assert "line 3: the owner 'harbour' is there twice" in said
    assert "line 4: 3 values under 5 heads" in said
    assert "owners.quay.records" in said
    assert "Did you mean 'title'?" in said
    with pytest.raises(StudyInvalid) as caught:
        load_owners(written(tmp_path, "owner,recrods,epsilon_low,epsilon_high\nharbour,1,1,1\n"))
    assert "unknown column 'recrods'. Did you mean 'records'" in caught.value.remedy
    assert "lacks the column 'records'" in caught.value.remedy


def test_a_file_of_a_thousand_owners_reads(tmp_path):
    path = tmp_path / "owners.toml"
    path.write_text(to_toml(file_of(owners={f"owner {k}": HARBOUR | {"records": k + 1} for k in range(1000)})))
    assert [offer.records for offer in load_owners(path).offers().values()] == list(range(1, 1001))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StudyInvalid, match="cannot be read"):
        load_owners(tmp_path / "none.toml")
    with pytest.raises(StudyInvalid, match="cannot be read"):
        load_owners(tmp_path)


def test_an_owner_that_is_there_twice_is_named(tmp_path):
    path = tmp_path / "owners.toml"
    path.write_text("[owners]\nDorf = { records = 5, epsilon = 1.0 }\nDorf = { records = 6, epsilon = 1.0 }\n")
    with pytest.raises(StudyInvalid, match=r"line 3, .*: Dorf; is it there twice\?"):
        load_owners(path)
