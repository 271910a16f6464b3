"""Questions of every kind and channel, asked as bytes, give exactly what they give without a wire."""

from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.core import l1, l2, linf, local
from hedgerow.core.question import travels
from hedgerow.crypto import privfl
from hedgerow.crypto.hidden_model import HiddenModel
from hedgerow.data import iid, load
from hedgerow.engines import InProcess, simulate
from hedgerow.learn import fedavg, mlp
from hedgerow.privacy import Skellam, Tree, above_threshold, choose
from hedgerow.privacy.local.mean import Duchi
from hedgerow.privacy.local.rappor import Permanent, collect
from hedgerow.privacy.local.reports import CountMeanSketch, HadamardSketch, KRandomisedResponse, Rappor, SymmetricUnary
from hedgerow.privacy.sulq import Sulq
from hedgerow.stats import hidden_gradient_descent
from hedgerow.stats.counts import level_totals
from hedgerow.store import last
from hedgerow.testing import Wired
from hedgerow.testing.subject import assert_same
from hedgerow.wire.names import Names
from helpers import run_of

OWN = Names(("hedgerow", "test_questions_travel"))
LOG = "malignant ~ mean_radius + mean_texture"

CHANNELS = {
    "secagg": {"aggregation": hr.SecAgg(largest=1e4)},
    "pairwise": {"aggregation": hr.PairwiseMasks(largest=1e4, group=3)},
    "shares": {"aggregation": hr.AdditiveShares(largest=1e4)},
    "server noise": {"clip": l2(1.0), "mechanism": hr.Gaussian(1.0)},
    "tree": {"clip": l2(1.0), "mechanism": Tree(1.0, 2)},
    "party noise": {"clip": l1(1.0), "mechanism": hr.Laplace(1.0, at="party")},
    "shared noise": {
        "clip": l2(1.0),
        "mechanism": Skellam(1.0, at="shares", least=3),
        "aggregation": hr.SecAgg(records=9000),
    },
    "top k": {"compression": TopK(0.1, smallest=1)},
    "random k": {"clip": l2(1.0), "compression": RandomK(0.1, smallest=1), "mechanism": hr.Gaussian(1.0)},
    "levels": {"compression": Quantised(8, smallest=1)},
    "rotation": {"compression": Rotated(4, smallest=1)},
    "sketch": {"compression": Sketched(3, 50, smallest=1), "aggregation": hr.SecAgg(largest=100.0)},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("channel", CHANNELS)
def test_training_travels_through_every_channel(channel):
    one, other = (
        last(
            fedavg(
                simulate(load("digits").take(range(200)), iid(parties=6), seed=3, engine=engine).protect(**CHANNELS[channel]),
                module=mlp(64, [3], 10),
                rounds=2,
                rate=None if channel == "tree" else 0.9,
                solver="momentum",
                held_out=None,
            )
        )
        for engine in (InProcess(threads=1), Wired(OWN))
    )
    assert_same(one, other)


@local(additive=True)
def mean_bmi(broadcast, party, rng, *, scale):
    """One number, between minus one and one."""
    return scale * (party.w * np.tanh(party["bmi"])).sum() / max(party.n, 1.0)


@local
def size_of_bmi(broadcast, party, rng):
    """A number for each of two halves."""
    return np.array([party["bmi"].min(), party["bmi"].max()])


@local
def kept(broadcast, party, rng):
    """What the party remembers, and then a little more."""
    party.state["seen"] = party.state["seen"] + party["bmi"][:2] + rng.normal(size=2)
    return party.state["seen"]


@travels
def nothing_yet(broadcast, party):
    """What a party remembers in the beginning."""
    return {"seen": np.zeros(2) + broadcast["from"]}


@travels
def raised(columns, *, by):
    """A column more."""
    return {"raised": columns["bmi"] + by}


@travels
def heavy(columns, *, above):
    """Whether a record is counted, for SuLQ."""
    return columns["bmi"] > above


@local
def candidates(broadcast, party, rng):
    """Scores of three candidates."""
    return np.array([party.n / 100, 0.0, 1.0])


def clinic(engine):
    """A table with a binary target, on a fresh engine of the same kind."""
    return simulate(load("breast_cancer"), iid(parties=4), seed=2, engine=engine)


def digits(engine):
    """A table with a target of several levels."""
    return simulate(load("digits").take(range(300)), iid(parties=4), seed=2, engine=engine)


def twice(fed):
    """A question that depends on what was kept in the one before."""
    return [fed.sum(kept, {"from": np.float32(2)}, init=nothing_yet) for _ in range(2)]


BMI = partial(mean_bmi, scale=np.float32(0.5))
SHORT_KEYS = HiddenModel(privfl.PrivFL(512, insecure=True), hr.SecAgg(records=9000))
QUESTIONS = {
    "state": twice,
    "a preparation of one's own": lambda fed: fed.prepare(raised, by=1.5).sum(BMI),
    "everybody's": lambda fed: fed.gather(BMI),
    "spare places": lambda fed: fed.sample(size=2, spare=1).sum(BMI),
    "some records": lambda fed: fed.sample(records=0.5).sum(BMI),
    "turns": lambda fed: fed.sample(every=2).sum(BMI),
    "picked": lambda fed: fed.pick(["party 2"]).sum(BMI),
    "aside": lambda fed: fed.aside().sum(BMI),
    "signs": lambda fed: fed.protect(clip=linf(1.0), mechanism=Duchi(1.0)).sum(size_of_bmi),
    "simulated noise": lambda fed: fed.protect(clip=l2(1.0), mechanism=hr.privacy.SimulatedGaussian(1.0)).sum(BMI),
    "a choice": lambda fed: choose(fed, candidates, bound=linf(1.0, "record"), epsilon=1.0),
    "a threshold": lambda fed: [
        one.above for one in above_threshold(fed, [BMI, BMI], 0.1, epsilon=1.0, bound=l1(1.0, "record"), most=2)
    ],
    "a statistical query": lambda fed: Sulq(fed, 3, hr.Gaussian(2.0)).sum(heavy, above=0.0),
    "reports remembered": lambda fed: last(collect(fed, "sex", 2, Permanent(reports=2), 2)).ones,
    **{
        law.__name__: lambda fed, law=law: last(level_totals(fed.protect(mechanism=law(2.0, 150)), ["sex"])).counts["sex"]
        for law in (KRandomisedResponse, SymmetricUnary, Rappor, CountMeanSketch, HadamardSketch)
    },
    "odds": lambda fed: hr.stats.odds_ratio_table(clinic(run_of(fed).engine), LOG).to_numpy(float),
    "metrics": lambda fed: hr.stats.binary_metrics(
        clinic(run_of(fed).engine), hr.stats.logistic_regression(clinic(run_of(fed).engine), LOG)
    ),
    "a curve": lambda fed: (
        hr.stats.roc(clinic(run_of(fed).engine), hr.stats.logistic_regression(clinic(run_of(fed).engine), LOG)).counted
    ),
    "label shares": lambda fed: hr.learn.label_spread(digits(run_of(fed).engine)),
    "spread": lambda fed: hr.learn.spread(fed, mlp(11, [2], 1)),
    "a hidden model": lambda fed: last(
        hidden_gradient_descent(fed.protect(aggregation=SHORT_KEYS), "progression ~ bmi", learning_rate=0.1, rounds=1)
    ),
}


@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "spread")) for name in QUESTIONS])
def test_a_question_of_another_kind_travels(name):
    table = load("diabetes")
    one, other = (
        QUESTIONS[name](simulate(table, iid(parties=4), seed=2, engine=engine)) for engine in (InProcess(threads=1), Wired(OWN))
    )
    np.testing.assert_equal(shown(other), shown(one))


def shown(result):
    """A result as numbers and texts."""
    return vars(result) if hasattr(result, "__dataclass_fields__") else result
