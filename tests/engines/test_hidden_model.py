"""Hidden models through the waist: totals are plain ones, parties learn nothing of the model, the server only totals."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.crypto import AdditiveShares, HiddenModel, PairwiseMasks, PrivFL, SecAgg, hidden_model, privfl
from hedgerow.crypto.paillier import PaillierPublic
from hedgerow.crypto.privfl import masks
from hedgerow.crypto.privfl.settings import MODEL
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.errors import MessageRefused, RoundRefused, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.stats import logistic_regression
from hedgerow.stats.hidden import descent as program
from hedgerow.stats.hidden.descent import HiddenState, hidden_gradient_descent
from hedgerow.stats.hidden.terms import gradient_bound
from helpers import run_of, with_question

SCHEMA = Schema(
    (
        Column("u", "number", low=-1, high=1),
        Column("v", "number", low=-1, high=1),
        Column("ill", "binary", role="target"),
        Column("pain", "number", role="ignore", low=-2, high=2),
        Column("free", "number", role="ignore"),
    )
)
CASES = {
    "linear": ("pain ~ u + v", "gaussian", 1),
    "logistic": ("ill ~ u + v", "binomial", 1),
    "cubic": ("ill ~ u + v", "binomial", 3),
}
THETA = np.array([0.625, -1.375, 0.84375])
OTHERS = [
    SecAgg(adversary="active", records=8),
    PairwiseMasks(records=8),
    PairwiseMasks(group=3, records=8),
    AdditiveShares(records=8),
]
SHORT = privfl.PrivFL(512, insecure=True)
cases = pytest.mark.parametrize("case", CASES)


def hiding(inner=None, **settings):
    return HiddenModel(replace(SHORT, **settings), inner or SecAgg(records=8))


def stores(n_parties=6, n=18, engine=None, views=False):
    table = Table(SCHEMA.admit(SCHEMA.synthetic(n, np.random.default_rng(3))), SCHEMA)
    return simulate(table, iid(n_parties), seed=1, engine=engine or InProcess(threads=1), record_views=views)


def gradient(fed, case="linear", theta=THETA, rounds=1):
    """The total gradient at a model, after so many rounds that do not move."""
    formula, family, degree = CASES[case]
    start = HiddenState(0, theta, theta, 1.0)
    settings = {"family": family, "degree": degree, "largest": 2.0, "learning_rate": 1e-12}
    *_, state = hidden_gradient_descent(fed, formula, rounds=rounds, start=start, **settings)
    return state.gradient


def close(found, plain, case="linear"):
    """Whether two gradients differ by fixed-point steps alone; a cubic's predictors have coarser ones."""
    assert_allclose(found, plain, atol=2e-3 if case == "cubic" else 1e-6)
    return True


@dataclass
class Leaky(InProcess):
    """Loses some parties' answers at one step, and keeps what parties were sent."""

    at: str = ""
    who: Collection[str] = ()
    often: int = 10**6

    def exchange(self, outbox):
        if outbox.step is not None:
            SENT.append(outbox)
            if outbox.step.name == self.at and self.often:
                self.often -= 1
                ids = tuple(id for id in outbox.ids if id not in self.who)
                outbox = replace(outbox, ids=ids)
        return super().exchange(outbox)


SENT = []


@pytest.fixture(autouse=True)
def nothing_sent():
    SENT.clear()


# ---- totals -------------------------------------------------------------------------------------------------------------
@cases
@pytest.mark.parametrize("engine", [Loop(), InProcess(threads=2)], ids=["loop", "threads"])
def test_gradients_are_the_plain_ones_to_the_step(case, engine):
    assert close(gradient(stores(engine=engine).protect(aggregation=hiding()), case), gradient(stores(), case), case)


@pytest.mark.parametrize("inner", OTHERS, ids=lambda m: m.name)
def test_masks_may_be_added_up_in_any_hidden_way(inner):
    assert close(gradient(stores().protect(aggregation=hiding(inner))), gradient(stores()))


@pytest.mark.slow
def test_a_run_with_a_lawful_key_equals_the_plain_one():
    run = {"family": "binomial", "learning_rate": 0.4, "rounds": 3, "largest": 2.0}
    *_, plain = hidden_gradient_descent(stores(4, 12), "ill ~ u + v", **run)
    *_, hidden = hidden_gradient_descent(
        stores(4, 12).protect(aggregation=PrivFL(key_bits=2048, records=8)), "ill ~ u + v", **run
    )
    assert_allclose(hidden.theta, plain.theta, atol=1e-6)
    assert hidden.n == 12


@pytest.mark.parametrize("case", ["linear", "cubic"])
@pytest.mark.parametrize("step", ["paillier-key", "keys", "shares", "predictors", "contribution", "unmask"])
def test_whoever_leaves_the_total_is_the_survivors_gradient(case, step):
    fed = stores(engine=Leaky(threads=1, at=step, who=("party 2",)), views=True).protect(aggregation=hiding())
    found = gradient(fed, case)
    rows = [seen.source for seen in hr.engines.view(fed, "server") if seen.kind == "masked row"]
    leaves = {"paillier-key", "keys", "shares", "contribution"} | ({"predictors"} if case == "cubic" else set())
    assert set(fed.members) - set(rows) == ({"party 2"} if step in leaves else set())
    assert close(found, gradient(stores().pick(rows), case), case)


@pytest.mark.slow
def test_samples_are_added_up_and_nobody_else():
    fed, plain = stores(10, 30).protect(aggregation=hiding(least=3)), stores(10, 30)
    for _ in range(4):
        cohort = fed.sample(size=4)
        assert close(gradient(cohort), gradient(plain.pick(cohort.members)))
    assert close(gradient(fed), gradient(plain))


def test_more_rounds_than_an_epoch_of_masks_has():
    fed = stores().protect(aggregation=hiding(SecAgg(records=8, rounds_per_epoch=2)))
    assert close(gradient(fed, rounds=5), gradient(stores()))


def test_a_question_that_was_refused_can_be_asked_again():
    everybody = tuple(f"party {i + 1}" for i in range(6))
    fed = stores(engine=Leaky(threads=1, at="contribution", who=everybody[:4], often=1)).protect(aggregation=hiding())
    with pytest.raises(RoundRefused):
        gradient(fed)
    assert close(gradient(fed), gradient(stores()))


# ---- what parties see ---------------------------------------------------------------------------------------------------
def received(case, theta, engine=Leaky):
    """All that parties get for one question, but for the random bytes of letters: and those bytes."""
    SENT.clear()
    fed = stores(4, 8, engine=engine(threads=1), views=True).protect(aggregation=hiding())
    gradient(fed, case, theta)
    names = {seen.query for seen in hr.engines.view(fed, "party 1")}
    asked = [(box.step, box.question, box.release) for box in SENT]
    told = [(step.name, put.broadcast, str(put.local), str(release), str(put.init)) for step, put, release in asked]
    seen = [(view.kind, view.values[0], len(view.values[1])) for view in hr.engines.view(fed, "party 1")]
    letters = [view.values[1] for view in hr.engines.view(fed, "party 1")]
    return (names, told, seen), letters, fed


def tells(theta, letters, public):
    """Whether a coefficient is in letters: as a float, in whole steps of some grid, or encrypted without randomness."""
    steps = {int(np.rint(np.ldexp(t, bits))) % public.n for t in theta for bits in range(5, 62)}
    words = {np.float64(t).tobytes() for t in theta} | {step.to_bytes(8, "big") for step in steps if step < 2**63}
    if any(word in letter or word[::-1] in letter for word in words for letter in letters):
        return True
    for letter in letters:
        try:
            _, model, powers, _ = MODEL.unpack(letter)
        except MessageRefused:
            continue
        found = public.unpack(model, 3) + public.unpack(powers, len(powers) // public.ciphertext_bytes)
        if any((c % public.n == 1 and c // public.n in steps) or c in steps for c in found):
            return True
    return False


def independent_of_the_model(case="linear"):
    """Whether parties get the same for two models, and in no letter any of their numbers."""
    (zero, _, _), (some, letters, fed) = received(case, np.zeros(3)), received(case, THETA)
    (session,) = run_of(fed).sessions.open.values()
    return zero == some and not tells(THETA, letters, session.server.key.public)


@cases
def test_what_a_party_gets_is_the_same_for_every_model(case):
    assert independent_of_the_model(case)


def test_a_server_that_encrypts_without_randomness_is_caught(monkeypatch):
    monkeypatch.setattr(PaillierPublic, "encrypt", lambda self, m, r=None: int(self._plain(m)))
    assert not independent_of_the_model()


@pytest.mark.slow
def test_a_question_that_keeps_a_bound_made_from_the_model_is_caught(monkeypatch):
    monkeypatch.setattr(hidden_model, "withheld", lambda box: with_question(box, broadcast=None))
    assert independent_of_the_model()  # the program's bound is that of the largest model
    monkeypatch.setattr(
        program, "gradient_bound", lambda spec, family, degree, widest: gradient_bound(spec, family, degree, BOUND_AT[0])
    )
    BOUND_AT[0] = np.zeros(3)
    (zero, _, _) = received("linear", np.zeros(3))
    BOUND_AT[0] = THETA
    (some, _, _) = received("linear", THETA)
    assert zero != some


BOUND_AT = [np.zeros(3)]


def test_a_question_that_keeps_the_model_is_caught(monkeypatch):
    monkeypatch.setattr(hidden_model, "withheld", lambda box: box)
    with pytest.raises(RoundRefused, match="HR-243"):  # it computes the gradient where its terms are expected
        independent_of_the_model()
    assert any(box.question.broadcast is not None for box in SENT if box.step.contributes)


def test_the_ledger_tells_nothing_of_the_model():
    entries = [received("linear", theta)[2].ledger.entries[-1] for theta in (np.zeros(3), THETA)]
    assert entries[0] == entries[1]
    assert (entries[0].aggregation, entries[0].event.kind) == ("PrivFL over SecAgg", "nonprivate")


# ---- what the server sees -----------------------------------------------------------------------------------------------
def rows_look_uniform():
    fed = stores(6, 18, views=True).protect(aggregation=hiding())
    gradient(fed, rounds=12)
    rows = [seen.values for seen in hr.engines.view(fed, "server") if seen.kind == "masked row"]
    assert len(rows) == 6 * 12
    return stats.kstest(np.concatenate(rows) / 2.0**64, "uniform").pvalue > 1e-6


@pytest.mark.slow
def test_the_server_sees_uniform_rows_and_totals(monkeypatch):
    assert rows_look_uniform()
    monkeypatch.setattr(masks.Limbs, "fresh", lambda self: np.zeros(self.count, np.uint64))
    assert not rows_look_uniform()


# ---- refusals -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slots", [{"clip": l2(1.0)}, {"clip": l2(1.0), "mechanism": Gaussian(1.0)}], ids=["clip", "noise"])
def test_what_would_have_to_see_terms_is_refused(slots):
    fed = stores().protect(aggregation=hiding(), **slots)
    with pytest.raises(UnlawfulChannel, match=r"HR-211[\s\S]*No party was asked"):
        gradient(fed)


def test_a_broadcast_that_parties_would_see_is_refused():
    fed = stores(engine=Leaky(threads=1), views=True).protect(aggregation=hiding())
    with pytest.raises(UnlawfulChannel, match=r"shown to parties[\s\S]*No party was asked"):
        logistic_regression(fed, "ill ~ u + v")
    assert [box.step for box in SENT if box.question.broadcast is not None] == []


def test_columns_without_a_range_are_refused():
    with pytest.raises(UnboundedSum, match="HR-210"):
        list(hidden_gradient_descent(stores().protect(aggregation=hiding()), "pain ~ free", rounds=1))


def test_masks_that_do_not_fit_are_refused():
    for inner, settings in ((SecAgg(bits=32), {}), (SecAgg(least=3), {"least": 5})):
        with pytest.raises(SettingsInvalid, match="HR-511"):
            hiding(inner, **settings)


def test_a_worn_out_key_is_refused_with_the_parties_code():
    fed = stores().protect(aggregation=hiding(most_rounds=2))
    with pytest.raises(RoundRefused, match="HR-242"):
        gradient(fed, rounds=3)
