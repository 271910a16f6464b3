"""CTGAN and TVAE: gradients by hand, conditions that hold exactly, and tables that look like the real one."""

import inspect
import re
from inspect import signature

import numpy as np
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import ArgumentInvalid, BudgetExhausted, HedgerowError
from hedgerow.study import PROGRAMS
from hedgerow.synth import Codes, Provenance
from hedgerow.synth.gan.adversarial import level_loss, steepness
from hedgerow.synth.gan.encoding import RowEncoding
from hedgerow.synth.gan.modes import modes_of
from hedgerow.synth.gan.networks import Generator, activated, begun, filled, flat, mask_of
from hedgerow.synth.gan.tvae import reconstruction
from hedgerow.testing.subject import Subject

SCHEMA = Schema(
    (
        Column("x", "number", low=-6, high=6),
        Column("n", "integer", low=0, high=9),
        Column("group", "category", levels=("a", "b", "c")),
    )
)
SMALL = {"rounds": 2, "steps": 2, "batch_size": 20, "n_modes": 3, "hidden": 16}


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    columns = {"x": np.clip(rng.normal(2.0 * group - 2, 0.5), -6, 6), "n": rng.integers(0, 10, n).astype(float)}
    return Table(columns | {"group": group.astype(np.int16)}, SCHEMA)


def federation(parties=2, **kind):
    return hr.simulate(table(**kind), hr.data.iid(parties=parties), seed=0)


CONSTANTS = Schema(
    (
        Column("x", "number", low=-6, high=6, optional=True),
        Column("c", "number", low=2, high=2),
        Column("one", "category", levels=("only",), optional=True),
        Column("ill", "binary"),
    )
)
BUDGET = {"epsilon": 2.0, "delta": 1e-5}
SAMPLED = {"rounds": 2, "sampling_rate": 0.5, "batch_size": 15.0, "hidden": 4, "n_modes": 2}
FEW = {
    "ctgan": SMALL,
    "tvae": SMALL,
    "dp_ctgan": SAMPLED | BUDGET,
    "dp_tvae": SAMPLED | BUDGET,
    "pate_gan": {"rounds": 2, "teachers": 2, "made": 8, "batch_size": 8, "hidden": 4, "n_modes": 2} | BUDGET,
}


@pytest.mark.parametrize("name", ["ctgan", "tvae"])
def test_a_promise_that_cannot_be_kept_is_refused_and_names_who_keeps_it(name):
    made = getattr(hr.synth, name)
    with pytest.raises(ArgumentInvalid, match="no epsilon and no delta") as refused:
        made(federation(), **SMALL, **BUDGET)
    assert f"hr.synth.dp_{name}(" in refused.value.remedy
    with pytest.raises(BudgetExhausted) as refused:
        made(federation().within(hr.Budget(1.0, 1e-5, unit="record")), **SMALL)
    assert f"hr.synth.dp_{name}(" in refused.value.remedy


@pytest.mark.parametrize("name", FEW)
def test_help_names_every_setting(name):
    given = set(inspect.signature(getattr(hr.synth, f"{name}_rounds")).parameters) - {"federation", "start"}
    assert given == set(re.findall(r"`(\w+)`[,.]", getattr(hr.synth, name).__doc__.split("Returns")[0]))


@pytest.mark.parametrize("name", FEW)
def test_columns_that_are_constant_or_often_missing_are_made_up_lawfully(name):
    rng = np.random.default_rng(0)
    x = np.where(np.arange(30) % 3, rng.uniform(3, 6, 30), np.nan)
    one, ill = -(np.arange(30) % 2).astype(np.int16), rng.integers(0, 2, 30).astype(float)
    given = Table({"x": x, "c": np.full(30, 2.0), "one": one, "ill": ill}, CONSTANTS)
    found = getattr(hr.synth, name)(hr.simulate(given, hr.data.iid(parties=2), seed=0), **FEW[name])
    assert np.isfinite(found.modes).all()
    drawn = CONSTANTS.admit(found.sample(40, seed=1).columns)
    assert set(drawn["c"]) == {2.0}
    assert np.isfinite(drawn["ill"]).all()


@pytest.mark.parametrize("name", FEW)
def test_what_is_continued_from_a_state_claims_no_epsilon(name):
    """The state of a run without noise holds exact counts, and a fresh ledger knows nothing of them."""
    exact = {key: value for key, value in FEW[name].items() if key not in BUDGET}
    *_, state = getattr(hr.synth, f"{name}_rounds")(federation(), **exact | {"rounds": 1})
    for rounds in (1, 2):  # nothing is left, or one round
        found = getattr(hr.synth, name)(federation(), start=state, **FEW[name] | {"rounds": rounds})
        assert found.provenance.epsilon is None
        assert "continued from a given state" in found.provenance.privacy
        assert "no privacy is claimed" in str(found.sample(3, seed=0).source)


def test_tables_are_asked_by_calls_that_take_no_state():
    for name in ("tan", "mst", "rap", "copula", "marginals"):
        assert "start" not in signature(getattr(hr.synth, name)).parameters


@pytest.fixture(scope="module")
def made():
    return hr.synth.ctgan(federation(), pac=2, **SMALL)


def test_the_penalty_of_a_linear_critic_is_that_of_its_slope():
    critic = nn.Linear(4, 1, bias=False)
    real, fake = torch.zeros(6, 4), torch.ones(6, 4)
    found = steepness(lambda x, draws=None: critic(x)[:, 0], real, fake, torch.Generator())
    torch.testing.assert_close(found, (critic.weight.norm() - 1) ** 2)


def test_the_loss_of_levels_is_cross_entropy_of_the_wanted_one():
    encoding = RowEncoding(Codes.of(SCHEMA), n_modes=2)
    out, m = torch.randn(5, encoding.width), torch.eye(3)[[0, 2, 1, 1, 0]]
    hot = encoding.discrete[0].hot
    wanted = nn.functional.cross_entropy(out[:, hot], m.argmax(1))
    assert float(level_loss(encoding, out, m)) == pytest.approx(float(wanted), rel=1e-6)


def test_reconstruction_is_the_log_density_but_for_a_constant():
    encoding = RowEncoding(Codes.of(SCHEMA), n_modes=2)
    rows = torch.from_numpy(encoding.encode(table(4).columns, modes_of(encoding, None)))
    out, delta = torch.randn(4, encoding.width), torch.tensor([0.3, 0.7])
    wanted = torch.zeros(4)
    for block in encoding.blocks:
        if block.mode >= 0:
            law = torch.distributions.Normal(torch.tanh(out[:, block.alpha]), delta[block.mode])
            wanted -= law.log_prob(rows[:, block.alpha]) - 0.5 * np.log(1 / (2 * np.pi))
        wanted -= torch.distributions.Categorical(logits=out[:, block.hot]).log_prob(rows[:, block.hot].argmax(1))
    torch.testing.assert_close(reconstruction(encoding, out, rows, delta), wanted)


def test_a_mode_without_weight_is_never_made():
    encoding = RowEncoding(Codes.of(SCHEMA), n_modes=3)
    modes = modes_of(encoding, None)
    modes[0, 1, 0] = 0.0
    net = filled(Generator(encoding, 8), begun(Generator, 0, encoding, 8))
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        rows = activated(encoding, net(torch.randn(500, 128 + 3, generator=draws)) + mask_of(encoding, modes), draws)
    assert set(rows[:, 1:4].argmax(1).tolist()) == {0, 2}


def test_first_weights_follow_from_the_seed_and_leave_the_generator_of_torch_alone():
    encoding = RowEncoding(Codes.of(SCHEMA), n_modes=2)
    before = torch.random.get_rng_state()
    one, other = begun(Generator, 1, encoding, 8), begun(Generator, 2, encoding, 8)
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(one, begun(Generator, 1, encoding, 8))
    assert np.abs(one - other).max() > 0.01
    np.testing.assert_array_equal(flat(filled(Generator(encoding, 8), one)), one)


def test_conditions_hold_exactly_and_records_are_lawful(made):
    found = made.sample(60, where={"group": ["b", "c"], "x": (-1, 4), "n": (2, 8)}, seed=0)
    SCHEMA.admit(found.columns)
    assert len(found) == 60
    assert set(found.columns["group"]) <= {1, 2}
    assert -1 <= found.columns["x"].min() <= found.columns["x"].max() <= 4
    assert set(found.columns["n"]) <= set(range(2, 9))


def test_the_same_seed_gives_the_same_records(made):
    one, again, other = (made.sample(30, seed=seed).columns["x"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_condition_that_is_never_met_is_refused_with_a_remedy(made):
    with pytest.raises(HedgerowError, match=r"satisfy the conditions[\s\S]*wider"):
        made.sample(5, where={"x": 0.123})


def test_codes_are_drawn_too(made):
    codes = made.draw(40, hr.synth.Conditions.of(made.codes, {"group": "c"}), np.random.default_rng(0))
    assert codes.shape == (40, 3)
    assert (codes[:, 2] == 2).all()


@pytest.mark.parametrize("program", [hr.synth.ctgan, hr.synth.tvae])
def test_public_modes_and_conditions_ask_for_no_counts(program):
    given = {"balanced": False, "pac": 2} if program is hr.synth.ctgan else {"latent": 4}
    fed = federation()
    program(fed, modes="equal", **given, **SMALL)
    assert len(fed.ledger) == SMALL["rounds"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pac": 3}, r"batch_size=20 with pac=3[\s\S]*multiple"),
        ({"rounds": 0}, "rounds is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0"),
    ],
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(given, words):
    fed = federation()
    with pytest.raises(HedgerowError, match=words):
        hr.synth.ctgan(fed, **SMALL | given)
    assert len(fed.ledger) == 0


def test_counts_do_not_pass_a_channel_for_updates():
    private = federation().protect(clip=hr.l2(1.0, "party"), mechanism=hr.Gaussian(1.0))
    with pytest.raises(HedgerowError, match=r"counts of bins[\s\S]*modes='equal'"):
        hr.synth.ctgan(private, pac=2, **SMALL)
    hr.synth.ctgan(private, pac=2, modes="equal", balanced=False, **SMALL)
    assert private.ledger.epsilon(delta=1e-5, unit="party") < np.inf


@pytest.mark.slow
@pytest.mark.parametrize(("parties", "steps"), [(1, 60), (5, 20)])
def test_groups_and_their_numbers_are_learned(parties, steps):
    """Means of x by group are -2, 0 and 2; groups have shares .6, .3 and .1."""
    settings = {"rounds": 6, "steps": steps, "batch_size": 100, "hidden": 32, "latent": 4, "n_modes": 4, "learning_rate": 5e-3}
    found = hr.synth.tvae(federation(parties, n=600), columns=["x", "group"], **settings).sample(2000, seed=0)
    group, x = found.columns["group"], found.columns["x"]
    np.testing.assert_allclose(np.bincount(group, minlength=3) / 2000, [0.6, 0.3, 0.1], atol=0.1)
    assert x[group == 0].mean() < -1 < x[group == 1].mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ctgan", "tvae", "dp_ctgan", "dp_tvae", "pate_gan"])
def test_records_are_drawn_from_what_a_run_keeps(name):
    """From the settings of a study and the arrays of its outcome, as `hedgerow synth` does, the same as at once."""
    subject = Subject(PROGRAMS[name])
    built = subject.built()
    *_, state = subject.states(built)
    declared = PROGRAMS[name]
    arrays = declared.outcome(built.federation, built.settings, state).arrays
    made = declared.synthesizer(built.settings, arrays, built.schema, Provenance("by test"))
    again = getattr(hr.synth, name)(subject.built().federation, **subject.case.settings)
    one, other = made.sample(20, seed=3), again.sample(20, seed=3)
    assert one.provenance.method == "by test"
    for column in one.columns:
        np.testing.assert_allclose(one.columns[column], other.columns[column], rtol=1e-5)
