import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from share import above, share

import hedgerow as hr

TABLE = hr.data.load("breast_cancer")


def hospitals(**engine):
    return hr.simulate(TABLE, partition=hr.data.iid(parties=5), seed=0, **engine)


def test_a_share_is_the_pooled_share():
    state = hr.last(share(hospitals(), column="mean_radius", threshold=15.0))
    assert state.share == (TABLE.to_pandas()["mean_radius"] > 15).mean()


@pytest.mark.parametrize("protection", [{}, {"mechanism": hr.Gaussian(1.0)}], ids=["open", "noisy"])
def test_every_engine_gives_the_same_share(protection):
    slow, fast = (hospitals(engine=engine).protect(**protection) for engine in (hr.Loop(), hr.InProcess(threads=2)))
    assert hr.last(share(slow, column="mean_radius", threshold=15.0)) == hr.last(
        share(fast, column="mean_radius", threshold=15.0)
    )


@given(x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), threshold=st.floats(-1e6, 1e6))
def test_one_record_moves_no_number_by_more_than_one(x, threshold):
    every, others = (
        above(np.array(threshold), hr.Party("one", {"x": np.array(part)}, np.ones(len(part))), None, column="x")
        for part in (x, x[1:])
    )
    assert all(abs(every[key] - others[key]) <= 1 for key in every)
