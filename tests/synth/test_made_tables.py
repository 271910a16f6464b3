"""What a made-up table, and that from which it is drawn, say of themselves: the target, a name, one line."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.synth import Codes, Conditions

COLUMNS = ["age", "children", "religious"]


@pytest.fixture(scope="module")
def towns():
    table = hr.data.load("fair").take(range(300)).select([*COLUMNS, "affairs"]).with_roles(target="affairs")
    return partial(hr.simulate, table, hr.data.iid(parties=2), seed=0)


@pytest.mark.parametrize("make", [hr.synth.tan, hr.synth.rap])
def test_target_of_a_made_up_table_is_the_one_it_was_made_for(towns, make):
    told = {} if make is hr.synth.tan else {"components": 5}
    for target in (None, "children", ""):
        schema = make(towns(), target=target, bins=4, **told).sample(5, seed=0).schema
        assert schema.target == ("affairs" if target is None else target or None)
        assert set(schema.features) == {*COLUMNS, "affairs"} - {schema.target}


def test_target_that_was_declared_stays_where_a_method_has_none(towns):
    for made in (hr.synth.mst(towns(), bins=4), hr.synth.marginals(towns(), bins=4), hr.synth.copula(towns(), bins=4)):
        assert made.sample(5, seed=0).schema.target == "affairs"


def test_synthesizers_say_in_one_line_what_they_are(towns):
    of_epsilon = towns()
    told = {
        repr(hr.synth.tan(of_epsilon, bins=4, epsilon=1.0, delta=1e-5)),
        repr(hr.synth.rap(towns(), bins=4, components=5)),
        repr(hr.synth.copula(towns(), bins=4)),
        repr(hr.synth.marginals(towns(), columns=["age"])),
    }
    assert told == {
        "TreeSynthesizer(tan of 4 columns, epsilon 1 at delta 1e-05 per record)",
        "MixtureSynthesizer(rap of 4 columns, no privacy is claimed)",
        "CopulaSynthesizer(copula of 4 columns, no privacy is claimed)",
        "TreeSynthesizer(marginals of the column 'age', no privacy is claimed)",
    }


def test_no_synthesizer_shows_its_arrays():
    pytest.importorskip("torch")
    from hedgerow.synth.gan import made
    from hedgerow.synth.synthesizer import Synthesizer

    def below(cls):
        return [one for sub in cls.__subclasses__() for one in (sub, *below(sub))]

    found = below(Synthesizer)
    assert made.NetworkSynthesizer in found
    assert {one.__repr__ for one in found if one.__module__.startswith("hedgerow.")} == {Synthesizer.__repr__}


GAPS = Schema(
    (
        Column("age", "integer", low=18, high=110),
        Column("creatinine", "number", low=0.1, high=20, optional=True),
        Column("smoking", "category", levels=("never", "former"), optional=True),
    )
)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"age": (120, None)}, "above the declared 110"),
        ({"age": (None, 10)}, "below the declared 18"),
        ({"creatinine": float("nan")}, "a missing value is no condition"),
        ({"smoking": None}, "a missing value is no level"),
        ({"smoking": ["never", np.nan]}, "a missing value is no level"),
    ],
)
def test_what_is_beyond_a_range_or_missing_is_refused_in_words(where, said):
    with pytest.raises(SettingsInvalid, match=said):
        Conditions.of(Codes.of(GAPS), where)


def test_none_asks_of_a_number_for_any_value_that_is_there():
    gaps = np.array([1.0, np.nan] * 50)
    table = Table({"age": np.full(100, 50.0), "creatinine": gaps, "smoking": np.zeros(100, np.int16)}, GAPS)
    made = hr.synth.marginals(hr.simulate({"one": table}), bins=4)
    assert np.isnan(made.sample(100, seed=0)["creatinine"]).any()
    assert not np.isnan(made.sample(100, where={"creatinine": None}, seed=0)["creatinine"]).any()


@pytest.mark.parametrize("sigma", [2.0, 0.0])
def test_a_report_says_that_its_number_of_records_is_a_noisy_one(towns, sigma):
    schema, settings = towns().schema, {"bins": 4, "columns": ["age", "children"], "classes": 1, "rounds": 0, "components": 2}
    *_, state = hr.synth.class_trees(towns(), columns=settings["columns"], bins=4)
    noisy = replace(state, sigma_singles=sigma)
    said = "records, from noisy tables" if sigma else "records"
    shown = sys.modules["hedgerow.synth.tan"].outcome_of(schema, settings, noisy)
    assert [name for name in shown.metrics if name.startswith("records")] == [said]
