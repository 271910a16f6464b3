"""Values on the wire: they come back exactly, what is not marked is not named, and hostile bytes are refused."""

import random
import struct
import tracemalloc
from dataclasses import dataclass
from functools import partial

import msgpack
import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.core.arrays import Layout
from hedgerow.core.question import Preparation, travels
from hedgerow.data import Column, Schema
from hedgerow.errors import ConfigInvalid, MessageRefused, ModelInvalid, NotNamed
from hedgerow.learn.features import freeze
from hedgerow.learn.made import MOST_PARAMETERS, Made, made_by, made_of
from hedgerow.learn.models import Model
from hedgerow.learn.records import without_batch_norm
from hedgerow.stats.design import design
from hedgerow.stats.linear.sums import linear_sums
from hedgerow.store import write_bytes
from hedgerow.wire.travellers import TRAVELLERS, hints
from hedgerow.wire.values import DEPTH, DTYPES, HEDGEROW, MAGIC, Names, pack, unpack

SPEC = hr.stats.design_of(
    Schema((Column("age", "number", low=0, high=99), Column("ill", "binary", role="target"))), "ill ~ age", "binomial"
)
HERE = Names(("hedgerow", "test_values"))


@travels
@dataclass(frozen=True)
class Dose:
    """A setting of somebody's own program."""

    size: float
    days: tuple[int, ...] = ()

    def __post_init__(self):
        if self.size < 0:
            raise ValueError("a dose below zero")


@travels
def mine(broadcast, party, rng, *, dose=None):
    """A local function of somebody's own program."""


@travels
class Net(torch.nn.Sequential):
    """A class as a factory."""

    def __init__(self, n, mixing=False):
        super().__init__(torch.nn.Linear(n, 4), *[torch.nn.BatchNorm1d(4)] * mixing)


def unmarked(broadcast, party, rng):
    """What nobody may be asked from elsewhere."""


def same(one, other):
    """Whether two values are the same, types and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (np.ndarray, np.generic)):
        strides = one.flags.f_contiguous == other.flags.f_contiguous
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()) and strides
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return one == other


ODD = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
VALUES = {
    "scalars": (None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 0.1, -0.0, float("inf"), "", "ä€", b"", b"\0"),
    "large integers": (2**64, -(2**63) - 1, 2**3072 + 1, -(10**300)),
    "not a number": ODD,
    "nested": {"a": [1, (2, {"b": [], 3: ()})], (1, "x"): {}, None: {1, 2}, 0.5: frozenset({"q", b"q"})},
    "order": {"z": 1, "a": 2, "m": 3},
    "numbers of numpy": (np.float32(0.1), np.int8(-3), np.bool_(True), np.float64("nan"), np.complex64(1j)),
    "bytes": (b"x" * 4095, b"y" * 4096, b"z" * 70_001),
    "functions": [
        linear_sums,
        partial(linear_sums, loss="binomial"),
        partial(mine, dose=Dose(1.5, (1, 2))),
    ],
    "arrays": [np.arange(24).reshape(2, 3, 4), np.array(5.0), np.zeros((0, 4)), np.asfortranarray(np.eye(3)), np.eye(400)[::2]],
    "array types": [np.ones(3).astype(code) for code in sorted(DTYPES)],
    "travellers": (hr.l2(1.5), {"w": hr.l1(2.0, "record")}, Layout((("a", (2, 3)), ("", ()))), Dose(0.0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_exactly_and_is_always_the_same_bytes(name):
    raw = pack(VALUES[name])
    found = unpack(raw, HERE)
    assert pack(found) == raw == pack(VALUES[name])
    if name != "functions":
        assert same(found, VALUES[name])
    else:
        assert [getattr(f, "func", f) for f in found] == [linear_sums, linear_sums, mine]
        assert found[2].keywords == {"dose": Dose(1.5, (1, 2))}


def test_a_large_array_is_copied_once_and_may_be_written_to_or_is_a_view():
    array = np.random.default_rng(0).normal(size=300_000)
    raw = pack({"w": array})
    tracemalloc.start()
    own = unpack(raw)["w"]
    seen = unpack(raw, copy=False)["w"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * array.nbytes
    assert own.flags.writeable
    assert not seen.flags.owndata
    assert same(own, array)
    assert same(seen, array)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        np.array([object()]),
        np.array(["text"]),
        np.zeros(2, ">f8"),
        np.str_("text"),
        {"deep": lambda x: x},
        unmarked,
        partial(unmarked),
        len,
        write_bytes,
        np.random.default_rng(0),
        "\ud800",
        1 << (8 << 13),
        torch.nn.Linear(1, 1),
        Model(torch.nn.Linear(1, 1), "number"),
        torch.float32,
        int,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_form_is_refused_before_anything_is_sent(value):
    with pytest.raises(NotNamed, match="HR-224"):
        pack([value])


def test_values_that_lie_too_deep_in_each_other_are_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(NotNamed, match="deep"):
        pack(endless)
    tokens = [b"l", 1] * (DEPTH + 3) + [b"l", 0]
    with pytest.raises(MessageRefused, match="deep"):
        unpack(message(*tokens))


# ---- names ----------------------------------------------------------------------------------------------------------
def message(*tokens, body=b""):
    """A message of these tokens."""
    head = b"".join(map(msgpack.packb, tokens))
    raw = MAGIC + len(head).to_bytes(4, "little") + head
    return raw + bytes(-len(raw) % 16) + body if body else raw


@pytest.mark.parametrize(
    "name",
    [
        "hedgerow.store.snapshot:write_bytes",  # defined here, and not marked
        "hedgerow.stats.linear.sums:np",
        "hedgerow.stats:linear_sums",  # imported there, defined elsewhere
        "hedgerow.core.question:travels",
        "hedgerow.core.question:Question",
        "os:system",
        "builtins:eval",
        "test_values:mine",  # marked, in a package that is not allowed
        "hedgerowx:f",
        "hedgerow.stats.linear.sums:linear_sums.__globals__",
        "hedgerow.__main__:main",
        "hedgerow.nowhere:f",
        "hedgerow..stats:f",
        "hedgerow",
        "",
        ":",
        "hedgerow.stats.linear.sums:",
    ],
)
def test_what_is_not_marked_in_an_allowed_package_cannot_be_named(name):
    for raw in (message(b"f", name), message(b"o", name, 0), message(b"k", name, pack({}))):
        with pytest.raises(MessageRefused):
            unpack(raw)


def test_a_package_of_ones_own_is_named_where_it_is_allowed():
    raw = pack(partial(mine, dose=Dose(1.0)))
    assert unpack(raw, HERE).func is mine
    for names in (HEDGEROW, Names(("test_value",)), Names(())):
        with pytest.raises(MessageRefused, match="no allowed package"):
            unpack(raw, names)
    with pytest.raises(ConfigInvalid, match="HR-601"):
        Names(("my-lab",))


def test_a_class_checks_what_arrives():
    for fields in ([1, "size", 1.0], [2, "size", -1.0, "days", b"t", 0], [2, "size", "x", "days", b"t", 0]):
        with pytest.raises(MessageRefused):
            unpack(message(b"o", "test_values:Dose", *fields), HERE)
    with pytest.raises(MessageRefused, match="wrong radius"):
        unpack(message(b"o", "hedgerow.core.bound:Bound", 4, "norm", 2, "radius", "1", "unit", "party", "step", None))
    for shape in ([b"t", 1, -1], [b"t", 2, 1 << 31, 1 << 31], [b"t", 1, "x"]):
        with pytest.raises(MessageRefused):
            unpack(message(b"o", "hedgerow.core.arrays:Layout", 1, "shapes", b"t", 1, b"t", 2, "", *shape))


def test_every_traveller_can_be_found_and_says_what_its_fields_are():
    for name in TRAVELLERS:
        kind = HEDGEROW.traveller(name)
        assert hasattr(kind, "__arrive__") or hints(kind)


# ---- models ---------------------------------------------------------------------------------------------------------
MODULES = {
    "mlp": lambda: hr.learn.mlp(4, [3, 2], 2, seed=7),
    "linear": lambda: hr.learn.linear(4, 1),
    "two_nn": lambda: hr.learn.two_nn((4,), 3, seed=1),
    "lenet": lambda: hr.learn.lenet((28, 28), 10),
    "lstm": lambda: hr.learn.lstm((3, 5), 2, hidden=4),
    "frozen": lambda: freeze(hr.learn.mlp(4, [3], 1), but=["3"]),
    "group norm": lambda: without_batch_norm(made_by("test_values:Net", 3, mixing=True), groups=2),
    "made by name": lambda: made_by("hedgerow.learn.zoo:logistic", (2, 2), 2),
    "own": lambda: made_by("test_values:Net", 3),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_model_is_made_again(name):
    model = Model(MODULES[name](), "category", stackable=False, flops=3.0, low=-1.0, scale=0.5)
    found = unpack(pack(model), HERE)
    assert found is not model
    assert found is unpack(pack(model), HERE)
    assert str(found.module) == str(model.module)
    assert [p.requires_grad for p in found.module.parameters()] == [p.requires_grad for p in model.module.parameters()]
    assert (found.kind, found.stackable, found.flops, found.low, found.scale) == ("category", False, 3.0, -1.0, 0.5)
    if name not in ("own", "group norm"):  # have no seed
        np.testing.assert_array_equal(found.initial, model.initial)
    assert pack(found) == pack(model)


def test_a_module_without_a_true_note_does_not_travel():
    changed = hr.learn.mlp(4, [3], 1)
    changed[1] = torch.nn.Linear(4, 5)
    for module in (
        changed,
        torch.nn.Linear(2, 1),
        freeze(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)), "0"),
    ):
        with pytest.raises(NotNamed, match="made_by"):
            made_of(module)


@pytest.mark.parametrize(
    "made",
    [
        Made(hr.learn.linear, (4, 1), (), b"another structure"),
        Made(hr.learn.linear, (1 << 20, 1 << 20)),
        Made(hr.learn.mlp, (MOST_PARAMETERS, [2], 1)),
        Made(hr.learn.linear, ("four", 1)),
        Made(mine, (None, None, None)),
        Made(design, ()),
        Made(linear_sums, (None, None, None)),
    ],
    ids=["other", "huge", "large", "wrong", "no module", "no factory", "a local function"],
)
def test_a_hostile_model_is_refused_without_being_built(made):
    told = pack(
        {
            "made": made,
            "kind": "number",
            "stackable": True,
            "wide": False,
            "least_stack": 8,
            "flops": 0.0,
            "low": 0.0,
            "scale": 1.0,
        }
    )
    with pytest.raises(MessageRefused):
        unpack(message(b"k", "hedgerow.learn.models:Model", told), HERE)


def test_a_factory_that_makes_no_module_is_refused():
    for name in ("test_values:mine", "nowhere:f", "nothing", "hedgerow.learn:nothing"):
        with pytest.raises((ModelInvalid, TypeError)):
            made_by(name, *([None] * 3 if name.endswith("mine") else []))


def test_preparations_are_the_same_object_each_time():
    preparation = Preparation(design, (("spec", SPEC),))
    found = unpack(pack(preparation))
    assert found == preparation
    assert found is unpack(pack(preparation))


# ---- hostile bytes --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "tokens",
    [
        (b"t", 1 << 40),
        (b"l", 3, 1),
        (b"d", 1, "key"),
        (b"d", 2, "key", 1, "key", 2),
        (b"d", 1, b"l", 0, 1),
        (b"s", 1, b"l", 0),
        (b"t", -1),
        (b"t", True, 1),
        (b"a", "<f8", 1, 4),
        (b"a", "|O", 1, 1),
        (b"a", "<U9", 1, 1),
        (b"a", "<f8", 2, 0, 1 << 60),
        (b"a", "<f8", 2, 1 << 32, 1 << 32),
        (b"a", "<f8", 1 << 20),
        (b"a", "<f8", 1, -1),
        (b"B", 1 << 40),
        (b"B", 5),
        (b"n", "<f8", b"1234"),
        (b"n", "|b1", b"\2"),
        (b"i", b"\1"),
        (b"i", bytes(1 << 14)),
        (b"p", 1, b"t", 0, b"d", 0),
        (b"p", b"f", "hedgerow.stats.linear.sums:linear_sums", b"t", 0, b"d", 1, 5, 5),
        (b"?",),
        (b"",),
        (1, 2),
        (),
        ([],),
        ([1],),
        ({},),
        (msgpack.ExtType(1, b"x"),),
    ],
    ids=str,
)
def test_hostile_tokens_are_refused(tokens):
    with pytest.raises(MessageRefused):
        unpack(message(*tokens))


def test_a_message_is_taken_whole_or_not_at_all():
    raw = pack([np.arange(5.0), "text", b"q" * 5000])
    for cut in [*range(60), len(raw) - 1]:
        with pytest.raises(MessageRefused):
            unpack(raw[:cut])
    for more in (raw + b"\0", raw + bytes(16), b"\0" + raw):
        with pytest.raises(MessageRefused):
            unpack(more)
    with pytest.raises(MessageRefused, match="the most"):
        unpack(raw, most=100)
    with pytest.raises(MessageRefused):
        unpack("text")


@pytest.mark.slow
def test_a_hundred_thousand_hostile_messages_end_in_a_value_or_a_refusal():
    """Random bytes, and lawful messages with bytes changed, cut out, doubled or put in."""
    chance = random.Random(5)
    lawful = [
        pack(value)
        for value in (
            {"w": np.arange(4.0), "n": 3, "of": (hr.l2(1.0), None)},
            partial(mine, dose=Dose(1.0, (1, 2))),
            [Preparation(design, (("spec", SPEC),)), Layout((("a", (2,)),)), {1, 2}, b"xyz", 2**70],
            Model(hr.learn.linear(2, 1), "number"),
        )
    ]
    refused = 0
    for i in range(100_000):
        if i % 2:
            raw = MAGIC[: chance.choice((0, 4, 4))] + chance.randbytes(chance.randrange(48))
        else:
            raw = bytearray(chance.choice(lawful))
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(raw))
                match chance.randrange(4):
                    case 0:
                        raw[at] = chance.randrange(256)
                    case 1:
                        del raw[at : at + chance.randrange(9)]
                    case 2:
                        raw[at:at] = raw[at : at + chance.randrange(9)]
                    case _:
                        raw[at:at] = chance.randbytes(2)
                raw = raw or bytearray(1)
        try:
            unpack(bytes(raw), HERE)
        except MessageRefused:
            refused += 1
    assert refused > 90_000


def test_nested_headers_cost_no_memory():
    """Lists in lists that each claim as many values as there are bytes."""
    raw = MAGIC + (1 << 20).to_bytes(4, "little") + b"\xdd\x00\x0f\xff\xff" * (1 << 20)
    tracemalloc.start()
    with pytest.raises(MessageRefused):
        unpack(raw[: 8 + (1 << 20)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
