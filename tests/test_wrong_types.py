"""Public functions and classes called with a wrong type for each argument, one at a time: the error names it, by code.

An argument is given alone: where its type was not looked at, Python would say that the others are missing.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.arguments import checked, is_checked, rules_of
from hedgerow.errors import ArgumentInvalid, HedgerowError

ROOMS = (
    "",
    ".data",
    ".stats",
    ".learn",
    ".privacy",
    ".privacy.accounting",
    ".trees",
    ".compression",
    ".crypto",
    ".engines",
    ".loggers",
)
RUN_AT_PARTIES = {"stats.design", "stats.linear_sums", "stats.rescale", "learn.local_sgd", "trees.binned", "trees.histogram"}
ANYTHING = ("Any", "Arrays", "Function", "Marked")  # annotations that ask nothing of a single value


class Wrong:
    """What nothing takes, unless it takes objects of every class that has some methods."""


WRONG = (Wrong(), "a word", 5, b"bytes", None)


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and class, by its name."""
    seen = set()
    for room in ROOMS:
        module = import_module(f"hedgerow{room}")
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, (FunctionType, type)) and id(found) not in seen:
                seen.add(id(found))
                yield f"{room[1:]}.{name}".lstrip("."), found


PUBLIC = dict(public())
FEDERATION = {f"Federation.{name}": getattr(hr.Federation, name) for name in ("sample", "pick", "within", "sum", "gather")}
CALLED = {name: thing for name, thing in PUBLIC.items() if is_checked(thing)} | FEDERATION


def test_every_public_function_and_every_class_that_people_make_is_looked_at():
    assert {name for name, thing in PUBLIC.items() if isinstance(thing, FunctionType)} - set(CALLED) == RUN_AT_PARTIES
    assert {"Budget", "InProcess", "data.Table", "data.iid", "learn.Solver", "privacy.Tree", "compression.TopK"} <= set(CALLED)
    assert "learn.ModelState" not in CALLED


@pytest.mark.parametrize("name", CALLED)
def test_a_wrong_type_is_refused_for_each_argument(name):
    for argument, (fits, _) in rules_of(CALLED[name]).items():
        if argument == "self" or (name, argument) == ("Federation", "engine"):
            continue
        wrong = next(value for value in WRONG if not fits(value))
        given = (None,) if name.startswith("Federation.") else ()
        with pytest.raises(HedgerowError) as caught:
            CALLED[name](*given, **{argument: wrong})
        if caught.type is not ArgumentInvalid and "federation" not in rules_of(CALLED[name]):
            continue  # a class, or a function that asks nobody, knows better what is wrong
        assert f": {argument}" in caught.value.reason
        assert "it takes " in caught.value.reason
        assert not caught.value.asked


@pytest.mark.parametrize("name", [name for name in CALLED if not name.startswith("engines.")])
def test_what_is_not_looked_at_is_annotated_with_any(name):
    thing = CALLED[name].__init__ if isinstance(CALLED[name], type) else CALLED[name]
    known = rules_of(CALLED[name])
    for parameter in inspect.signature(thing).parameters.values():
        one = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        hint = str(parameter.annotation)
        assert one or parameter.name in {"self", *known} or any(word in hint for word in ANYTHING), (parameter.name, hint)


@pytest.fixture(scope="module")
def hospitals():
    return hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda fed: hr.stats.means(fed, by="malignant"), "no argument 'by'"),
        (lambda fed: hr.stats.means(fed, 5), "columns=5 is an int; it takes a list or None"),
        (lambda fed: hr.stats.means("hospitals"), "federation='hospitals' is a str; it takes a Federation"),
        (lambda fed: hr.Gaussian("a"), "noise_multiplier='a' is a str; it takes a number"),
        (lambda fed: hr.Gaussian(sigma=1.0), "no argument 'sigma'"),
        (lambda fed: hr.Budget(epsilon="8", delta=1e-5), "epsilon='8' is a str; it takes a number"),
        (lambda fed: fed.protect(noise=1), "protect takes no argument 'noise'"),
        (lambda fed: fed.sample(rate="half"), "rate='half' is a str"),
        (lambda fed: hr.data.iid(partis=5), "iid takes no argument 'partis'.\n  Did you mean 'parties'?"),
        (lambda fed: hr.data.load(5), "name=5 is an int"),
        (lambda fed: hr.stats.quantiles(fed, "mean_radius", "half"), "'half' is a str; it takes a list of numbers"),
        (lambda fed: hr.engines.on(fed, 5), "engine=5 is an int; it takes a Hosting"),
        (lambda fed: hr.drive(5, fed), "program=5 is an int; it takes a function"),
        (lambda fed: hr.last(5), "states=5 is an int"),
    ],
)
def test_a_mistake_that_people_make_is_told_with_its_argument(call, said, hospitals):
    with pytest.raises(ArgumentInvalid) as caught:
        call(hospitals)
    assert said in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert hospitals.asked == 0


def test_mistakes_with_models_are_told_with_a_code(hospitals):
    pytest.importorskip("torch")
    module = hr.learn.linear(30, 2)
    for call, code in (
        (lambda: hr.learn.fedavg(hospitals, "resnet", rounds=3), "HR-107"),
        (lambda: hr.learn.fedavg(hospitals, module, rounds="3"), "HR-107"),
        (lambda: hr.last(hr.learn.fedavg(hospitals, module, rounds=3, batch_size="all")), "HR-511"),
        (lambda: hr.learn.evaluate(hospitals, "resnet", {}), "HR-107"),
        (lambda: hr.learn.mlp(30, "wide", "two"), "HR-107"),
        (lambda: hr.last(hr.learn.fedavg(hospitals, module, rounds=3, batch=5)), "HR-511"),
    ):
        with pytest.raises(HedgerowError) as caught:
            call()
        assert caught.value.code == code
    assert hospitals.asked == 0


def test_numbers_of_numpy_and_arrays_are_taken(hospitals):
    assert hr.l2(np.float32(1.0)).norm == hr.l2(1.0).norm
    assert hr.Gaussian(np.float64(1.5)) == hr.Gaussian(1.5)
    assert hr.stats.means(hospitals, np.array(["mean_radius"])).equals(hr.stats.means(hospitals, ["mean_radius"]))


def test_a_function_keeps_its_name_and_signature():
    inner = import_module("hedgerow.stats.moments").means
    assert hr.stats.means is not inner
    assert inspect.signature(hr.stats.means) == inspect.signature(inner)
    assert (hr.stats.means.__name__, hr.stats.means.__doc__) == (inner.__name__, inner.__doc__)


def later(frame: "fractions.Fraction", words: "Undefined", *rest: int, scale: "float | list[float]" = 1.0) -> str:  # noqa: F821
    return f"{frame} {words} {rest} {scale}"


def test_what_cannot_be_looked_up_is_not_checked():
    call = checked(later)
    assert call("a", 5, "rest", scale=[1.0]) == "a 5 ('rest',) [1.0]"
    with pytest.raises(ArgumentInvalid, match="scale is a Wrong; it takes a number or a list"):
        call("a", 5, scale=Wrong())
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        call("a")
    assert not isinstance(caught.value, HedgerowError)


def test_a_mistake_inside_stays_what_it_is():
    def broken(number: int) -> int:
        return number + "1"

    with pytest.raises(TypeError) as caught:
        checked(broken)(1)
    assert not isinstance(caught.value, HedgerowError)


@pytest.mark.parametrize("call", ["logistic_regression", "linear_regression", "poisson_regression"])
def test_a_keyword_that_is_handed_on_and_known_to_nobody_is_told_by_code(call):
    hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
    with pytest.raises(ArgumentInvalid, match=f"{call} takes no argument 'tolerance'"):
        getattr(hr.stats, call)(hospitals, "malignant ~ mean_radius", tolerance=1e-3)
