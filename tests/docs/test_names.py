"""The examples of the reference, docs/examples/names: they run as they stand, and are of names that exist."""

import doctest
import re
import tomllib
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import pytest

import hedgerow as hr

NAMES = Path(__file__).parents[2] / "docs" / "examples" / "names"
SLOW = {
    "compare",
    "compression",
    "export",
    "learn",
    "learn.features",
    "learn.private",
    "learn.robust",
    "learn.teachers",
    "store",
    "study",
}  # torch, or a run
NETWORKS = {"ctgan", "tvae", "dp_ctgan", "dp_tvae", "pate_gan"}
SLOW_NAMES = NETWORKS | {f"{name}_rounds" for name in NETWORKS}
SLOW_NAMES |= {
    "leakage_game",
    "utility_game",
    "best_welfare",
    "write_plan",
    "channel_variance",
    "tstr",
    "Tree",
    "Processes",
    "hidden_standardise",
    "hidden_gradient_descent",
    "gradient_queries",
    "largest_rate",
}
ALL_SHOWN = (
    "attacks",
    "data",
    "learn",
    "learn.features",
    "market",
    "market.games",
    "privacy.accounting",
    "stats",
    "stats.private",
    "synth",
)
SOURCE = Path(hr.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def parts(room):
    text = (NAMES / f"{room}.txt").read_text(encoding="utf-8")
    found = re.split(r"(?m)^## (\w+)\n", text)
    return dict(zip(found[1::2], (body.strip() for body in found[2::2]), strict=True))


ROOMS = {path.stem: parts(path.stem) for path in sorted(NAMES.glob("*.txt"))}
IN_DOCSTRINGS = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
SHOWN = [
    pytest.param(room, name, marks=[pytest.mark.slow] * (room in SLOW or name in SLOW_NAMES))
    for room, examples in ROOMS.items()
    for name, text in examples.items()
    if not text.startswith("->")
]


@pytest.mark.parametrize(("room", "name"), SHOWN)
def test_an_example_gives_what_it_shows(room, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(ROOMS[room][name], {"hr": hr, "__name__": "__main__"}, name, room, 0)
    assert example.examples
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("path", IN_DOCSTRINGS, ids=lambda path: path.stem)
def test_the_examples_of_docstrings_give_what_they_show(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = import_module(".".join(("hedgerow", *path.relative_to(SOURCE).with_suffix("").parts)))
    examples = [one for one in doctest.DocTestFinder().find(module, extraglobs={"hr": hr}) if one.examples]
    assert examples
    said = []
    for one in examples:
        doctest.DocTestRunner(optionflags=FLAGS).run(one, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("room", ROOMS)
def test_examples_are_of_public_names_and_lead_to_examples(room):
    assert set(ROOMS[room]) <= set(import_module(f"hedgerow.{room}").__all__)
    for text in ROOMS[room].values():
        if text.startswith("->"):
            assert not ROOMS[room][text.removeprefix("->").strip()].startswith("->")


@pytest.mark.parametrize("room", ALL_SHOWN)
def test_each_function_that_the_reference_puts_into_a_group_has_an_example(room):
    groups = tomllib.loads((NAMES.parents[1] / "reference" / "groups.toml").read_text(encoding="utf-8"))[room]
    module = import_module(f"hedgerow.{room}")
    listed = [name for group, names in groups.items() if not group.startswith("For those who") for name in names]
    functions = {name for name in listed if isfunction(getattr(module, name))}
    assert len(functions) > 6
    assert functions - set(ROOMS[room]) == set()
