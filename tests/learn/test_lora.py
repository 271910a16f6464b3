"""PEFT's adapters train and travel alone, in every program that trains a module.

The oracle is a network whose adapters are layers of its own, beside layers without parameters: the same numbers are asked, the
same factors are learned. A small BERT of Hugging Face with adapters goes beside a loop of PyTorch.
"""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.learn import Task, dpsgd, evaluate, fedavg, made_by, trained_weights, with_weights
from hedgerow.learn.models import Model
from hedgerow.store import last
from hedgerow.study.catalogue import listing
from hedgerow.study.registry import own
from hedgerow.testing import Subject
from hedgerow.wire.values import Names, pack, unpack
from helpers import ENGINE_NAMES, ENGINES

pytest.importorskip("peft")
from lora_nets import adapter, lora, text, twin

pytestmark = pytest.mark.slow
TRAINERS = [name for name in own() if "hidden" in listing(name).keys and name != "membership"]  # which releases no one model
SLOWER = ("admm", "geyer", "local_dpsgd")
HERE = Names(("hedgerow", "lora_nets"))
LOCAL = {"rounds": 2, "learning_rate": 0.3, "batch_size": 20}
WORDS, PLACES = 20, 6


def digits(parties=4, records=120):
    return hr.simulate(hr.data.load("digits").take(range(records)), hr.data.iid(parties=parties), seed=0)


def asked(name, net):
    """The last state of a program's case with one of the networks, and the numbers of each question."""
    subject = Subject(listing(name))
    settings = subject.case.settings | {"model": f"lora_nets:{net.__name__}"}
    program = {"name": name, **settings, **({"rounds": 1} if "rounds" in settings and name in SLOWER else {})}
    built = subject.built(study=subject.study(program=program))
    *_, state = subject.states(built)
    return state, [entry.numbers for entry in built.federation.ledger.entries]


def moved(net, state):
    """The largest movement of a parameter that is trained, and of one that is not."""
    by = {True: [0.0], False: [0.0]}
    for name, value in net.named_parameters():
        by[value.requires_grad].append(float(np.abs(state.weights[name] - value.detach().numpy()).max()))
    return max(by[True]), max(by[False])


@pytest.mark.parametrize("name", TRAINERS)
def test_every_program_trains_and_sends_the_adapters_alone(name):
    (state, numbers), (wanted, same) = asked(name, lora), asked(name, twin)
    shape = next(value.shape for value in wanted.weights.values())[1], list(wanted.weights.values())[-1].shape[0]
    net = lora(*shape)
    trained, frozen = moved(net, state)
    assert frozen == 0.0
    assert trained > 0 or name == "local_only"  # which releases no weights but those it began with
    assert numbers == same
    own = trained_weights(net, state)
    assert sum(value.size for value in own.values()) == adapter(*shape)
    for value, other in zip(own.values(), wanted.weights.values(), strict=True):
        np.testing.assert_allclose(value, other, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
@pytest.mark.parametrize("solver", ["sgd", "AdamW"])
def test_every_engine_sends_the_adapters_alone(engine, solver):
    net, fed = lora(64, 10), hr.engines.on(digits(), engine)
    settings = LOCAL | ({"solver": solver, "learning_rate": 0.01} if solver == "AdamW" else {})
    state = last(fedavg(fed, net, **settings))
    trained, frozen = moved(net, state)
    assert trained > 0.001
    assert frozen == 0.0
    assert {entry.numbers for entry in fed.ledger.entries} == {adapter(64, 10) + 1}
    wanted = last(fedavg(digits(), twin(64, 10), **settings))
    for value, other in zip(trained_weights(net, state).values(), wanted.weights.values(), strict=True):
        np.testing.assert_allclose(value, other, atol=5e-5)


def test_peft_saves_what_was_trained_and_evaluation_is_of_the_whole():
    import peft

    net, fed = lora(64, 10), digits()
    state = last(fedavg(fed, net, **LOCAL))
    alone = trained_weights(net, state)
    kept = peft.get_peft_model_state_dict(with_weights(net, state))
    assert len(kept) == len(alone) == 4
    for name, value in alone.items():
        np.testing.assert_array_equal(kept[name.replace(".default", "")].numpy(), value)
    again = with_weights(lora(64, 10), alone)
    x = torch.rand(5, 64)
    torch.testing.assert_close(again(x), with_weights(net, state)(x), rtol=0, atol=0)
    assert evaluate(fed, again, dict(state.weights)) == evaluate(fed, net, state)
    assert last(fedavg(fed, again, **LOCAL | {"rounds": 3}, start=state)).round == 3


def test_dropout_of_an_adapter_follows_the_party():
    import peft

    def net():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            plain = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
            return peft.get_peft_model(plain, peft.LoraConfig(r=2, lora_dropout=0.3, target_modules=["1"]))

    one, other = (last(fedavg(digits(), net(), **LOCAL)) for _ in range(2))
    assert moved(net(), one)[0] > 0.01  # B, which starts at zero, and then A
    for name, value in one.weights.items():
        np.testing.assert_array_equal(value, other.weights[name])


@pytest.mark.parametrize("loaded", [False, True], ids=["as its factory makes it", "loaded from elsewhere"])
def test_a_model_with_adapters_arrives(loaded):
    net = made_by("lora_nets:lora", 6, 3)
    if loaded:
        torch.nn.init.constant_(net.base_model.model[1].base_layer.weight, 0.5)
    model = Model(net, "category")
    sent = pack(model)
    came = unpack(sent, HERE)
    assert came.names == model.names
    assert sum(shape.numel() for shape in came.shapes) == adapter(6, 3)
    for name, value in model.fixed.items():
        np.testing.assert_array_equal(came.fixed[name].numpy(), value.numpy())
    assert (len(sent) > len(pack(Model(lora(6, 3), "category")))) == loaded


# ---- a small BERT ------------------------------------------------------------------------------------------------------------
def words(parties=3, n=18):
    rng = np.random.default_rng(0)
    mask = np.arange(PLACES) < rng.integers(2, PLACES + 1, n)[:, None]
    columns = {"ids": rng.integers(0, WORDS, (n, PLACES)), "mask": mask.astype(float), "label": rng.choice(["a", "b"], n)}
    schema = Schema(
        (
            Column("ids", "integer", shape=(PLACES,), low=0, high=WORDS - 1),
            Column("mask", "binary", shape=(PLACES,)),
            Column("label", "category", role="target", levels=("a", "b")),
        )
    )
    return Table(schema.admit(columns), schema)


TASK = Task(inputs={"input_ids": "ids", "attention_mask": "mask"}, output="logits")


@pytest.fixture(scope="module")
def bert():
    pytest.importorskip("transformers")
    return text(WORDS, 2)


def by_hand(net, table, rounds, rate, clip=None):
    """Whole batches of all records, which is FedAvg of one step, or with each record's gradient clipped."""
    net = copy.deepcopy(net)
    ids, mask, label = (torch.tensor(np.asarray(table[name]), dtype=torch.int64) for name in ("ids", "mask", "label"))
    mine = [value for value in net.parameters() if value.requires_grad]
    for _ in range(rounds):
        losses = F.cross_entropy(net(input_ids=ids, attention_mask=mask).logits, label, reduction="none")
        slopes = [torch.autograd.grad(loss, mine, retain_graph=True) for loss in (losses if clip else [losses.sum()])]
        if clip:
            long = [torch.cat([part.flatten() for part in slope]).norm() for slope in slopes]
            slopes = [
                [part / max(1.0, float(length) / clip) for part in slope] for slope, length in zip(slopes, long, strict=True)
            ]
        with torch.no_grad():
            for k, value in enumerate(mine):
                value -= rate * sum(slope[k] for slope in slopes) / len(label)
    return {name: value.detach().numpy() for name, value in net.named_parameters() if value.requires_grad}


@pytest.mark.parametrize("how", ["plain", "client-level", "record-level"])
def test_a_small_bert_with_adapters_trains_as_by_hand(bert, how):
    table = words()
    fed, clip = hr.simulate(table, hr.data.iid(parties=3), seed=0), None
    if how == "record-level":
        clip, fed = 0.3, fed.protect(mechanism=hr.Gaussian(1e-4))
        program = dpsgd(fed, bert, rounds=2, sampling_rate=1.0, batch_size=18, clip=clip, learning_rate=0.5, task=TASK)
    else:
        fed = fed if how == "plain" else fed.protect(clip=hr.l2(10.0), mechanism=hr.Gaussian(1e-7))
        program = fedavg(fed, bert, rounds=2, batch_size=None, learning_rate=0.5, task=TASK)
    state = last(program)
    found, wanted = trained_weights(bert, state), by_hand(bert, table, 2, 0.5, clip and clip * (1 - 2.5e-4))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5 if how == "plain" else 1e-3)
    trained, frozen = moved(bert, state)
    assert frozen == 0.0
    assert trained > 0.01
    d = sum(value.size for value in wanted.values())
    assert d == 4 * 2 * (2 * 16) + 16 * 2 + 2 == 290
    assert {entry.numbers for entry in fed.ledger.entries} == {d + 1 if how == "plain" else d}
