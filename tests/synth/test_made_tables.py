"""What a made-up table, and that from which it is drawn, say of themselves: the target, a name, one line."""

from __future__ import annotations

from functools import partial

import pytest

import hedgerow as hr

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
