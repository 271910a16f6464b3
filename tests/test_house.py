"""The check of the house finds what it looks for."""

import ast
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_house.py"


@pytest.fixture
def house(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("check_house", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SOURCE", tmp_path)
    return module


def problems(check, path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return list(check(path, ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "from hedgerow.core.federation import Federation, inside",
        "def f():\n    from hedgerow.core.federation import handle",
        "import hedgerow.core.federation as f",
        "from hedgerow.core import federation",
        "from hedgerow.core.run import Run",
    ],
)
def test_a_program_that_opens_a_federation_is_found(house, tmp_path, text):
    assert problems(house.open_handles, tmp_path / "stats" / "mean.py", text)
    assert not problems(house.open_handles, tmp_path / "engines" / "simulation.py", text)


def test_a_program_that_asks_is_in_order(house, tmp_path):
    text = "from hedgerow.core.federation import Federation"
    assert not problems(house.open_handles, tmp_path / "stats" / "mean.py", text)


def test_long_files_and_empty_names_are_found(house, tmp_path):
    assert problems(house.lengths, tmp_path / "long.py", "x = 1\n" * 401)
    assert not problems(house.lengths, tmp_path / "long.py", "x = 1\n" * 400)
    assert problems(house.module_names, tmp_path / "told.py", "")
    assert not problems(house.module_names, tmp_path / "mean.py", "")


def test_two_classes_of_one_name_are_found(house, tmp_path):
    one, other = ast.parse("class Loss: ..."), ast.parse("class Loss: ...\nclass _Own: ...")
    assert list(house.homonyms({tmp_path / "a.py": one, tmp_path / "b.py": other})) == ["Loss is a class of a.py and of b.py"]
    assert not list(house.homonyms({tmp_path / "a.py": other}))


def test_two_files_of_tests_of_one_name_are_found(house, tmp_path, monkeypatch):
    monkeypatch.setattr(house, "TESTS", tmp_path)
    for room in ("crypto", "trees"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "test_additive.py").touch()
    (tmp_path / "trees" / "test_tree.py").touch()
    assert list(house.test_names()) == ["test_additive.py is a file of tests in crypto and in trees"]
