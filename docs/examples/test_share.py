import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from my_lab.share import above, share

import hedgerow as hr
from hedgerow.testing import contract

TABLE = hr.data.load("breast_cancer")

test_contract = contract(share)


def test_a_share_is_the_pooled_share():
    hospitals = hr.simulate(TABLE, partition=hr.data.iid(parties=5), seed=0)
    state = hr.last(share(hospitals, column="mean_radius", threshold=15.0))
    assert state.share == (TABLE.to_pandas()["mean_radius"] > 15).mean()


@given(x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), threshold=st.floats(-1e6, 1e6))
def test_one_record_moves_no_number_by_more_than_one(x, threshold):
    every, others = (
        above(np.array(threshold), hr.Party("one", {"x": np.array(part)}, np.ones(len(part))), None, column="x")
        for part in (x, x[1:])
    )
    assert all(abs(every[key] - others[key]) <= 1 for key in every)
