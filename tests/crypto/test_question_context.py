"""What a row is bound to: everything that decides what a party computes, to the last bit."""

from functools import partial

import numpy as np
import pytest

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2, linf
from hedgerow.core.events import Sampling
from hedgerow.core.question import ASIDE, Preparation
from hedgerow.core.release import Release
from hedgerow.crypto.context import context_of
from hedgerow.privacy import Gaussian
from helpers import outbox


def local(broadcast, party, rng, *, theta=None, steps=0):
    """A local function."""


def other(broadcast, party, rng, *, theta=None):
    """Another one."""


def asked(theta, **changes):
    told = {"local": partial(local, theta=theta), "broadcast": {"w": np.arange(3.0)}, "number": 7}
    return outbox(**told | {"release": Release(bounds=l2(1.0))} | changes)


LONG = np.zeros(5000)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (np.array([1.0]), np.array([1.0 + 1e-12])),
        (LONG, np.where(np.arange(5000) == 2500, 1e6, LONG)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(4), np.zeros(4, np.float32)),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ([LONG, 1], [LONG, 2]),
        (Gaussian(1.0), Gaussian(2.0)),
        ("1", 1),
    ],
    ids=["a last digit", "the middle of an array", "a shape", "a type", "a mapping", "a list", "fields", "text"],
)
def test_settings_that_differ_have_different_contexts(one, another):
    assert context_of(asked(one)) == context_of(asked(one))
    assert context_of(asked(one)) != context_of(asked(another))


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 8},
        {"local": partial(other, theta=LONG)},
        {"local": partial(local, theta=LONG, steps=1)},
        {"broadcast": {"w": np.arange(3.0) + 1e-15}},
        {"broadcast": {"v": np.arange(3.0)}},
        {"release": Release(bounds=linf(1.0))},
        {"sampling": Sampling("records", 0.1)},
        {"cohort": 4},
        {"init": other},
        {"release": Release(bounds=l2(1.0), public_seed=1)},
        {"branch": ASIDE},
        {"view": (Preparation(other),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whatever_else_a_party_is_sent_changes_it(changes):
    assert context_of(asked(LONG)) != context_of(asked(LONG, **changes))


def test_keys_in_another_order_are_another_question():
    layouts = [Layout((("a", (2,)), ("b", (2,)))), Layout((("b", (2,)), ("a", (2,))))]
    assert len({context_of(asked(LONG), layout) for layout in layouts}) == 2


def test_the_order_in_which_settings_are_given_does_not_matter():
    first, second = partial(local, theta=1, steps=2), partial(local, steps=2, theta=1)
    assert context_of(asked(0, local=first)) == context_of(asked(0, local=second))
