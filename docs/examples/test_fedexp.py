import numpy as np
from my_lab.fedexp import fedexp

import hedgerow as hr
from hedgerow.testing import contract

test_contract = contract(fedexp)


def test_one_party_alone_takes_the_step_of_fedavg():
    digits = hr.data.load("digits").take(range(100))
    settings = {"module": hr.learn.linear(64, 10), "rounds": 2}
    ours, theirs = (
        hr.last(program(hr.simulate(digits, hr.data.iid(parties=1), seed=0), **settings))
        for program in (fedexp, hr.learn.fedavg)
    )
    assert all(np.allclose(ours.weights[name], theirs.weights[name], atol=1e-6) for name in theirs.weights)
