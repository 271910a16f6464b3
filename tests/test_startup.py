"""What is imported when: names by their first use, libraries by the code that uses them."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import hedgerow
from hedgerow.cli.pilot import free_port, lay_out
from hedgerow.lazy import LazyPackage

PACKAGES = sorted(
    {
        "hedgerow",
        *(found.name for found in walk_packages(hedgerow.__path__, "hedgerow.") if found.ispkg and "nvflare" not in found.name),
    }
)


def loaded(code: str) -> set[str]:
    """The modules of a fresh process that ran some code, what every process has left out."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    return set(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split())


def test_import_hedgerow_imports_no_room_and_no_library():
    found = {name for name in loaded("import hedgerow") if name.partition(".")[0] not in sys.stdlib_module_names}
    assert found == {"hedgerow", "hedgerow.lazy"}


def test_public_names_import_what_they_stand_on_and_no_more():
    found = loaded("from hedgerow import *")
    assert {"numpy", "hedgerow.core.federation", "hedgerow.engines.inprocess"} <= found
    assert not found & {"dp_accounting", "formulaic", "pandas", "pydantic", "rich", "scipy.special", "torch", "typer"}


def test_a_command_imports_no_program():
    found = loaded("import hedgerow.cli.main")
    assert "typer" in found
    assert not found & {"dp_accounting", "formulaic", "pandas", "pydantic", "scipy.special", "torch"}


@pytest.mark.slow
def test_a_station_that_waits_holds_no_program(tmp_path):
    lay_out(tmp_path / "pilot", ("alpha", "beta"), port=free_port())
    where = repr(str(tmp_path / "pilot" / "alpha"))
    opened = (
        "import threading\nfrom hedgerow.network.station_service import open_gate\n"
        f"opened = open_gate({where}, threading.Event())\nopened.station().close()\nopened.runner.close()"
    )
    found = loaded(opened)
    assert {"pydantic", "hedgerow.network.station.station"} <= found
    assert not found & {"dp_accounting", "formulaic", "pandas", "scipy.special", "torch", "hedgerow.study.catalogue"}


def test_packages_that_this_test_knows_are_all_there():
    assert {"hedgerow", "hedgerow.stats", "hedgerow.learn", "hedgerow.data", "hedgerow.privacy.accounting"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package):
    module = import_module(package)
    names = getattr(module, "__all__", ())
    assert {name for name in names if not hasattr(module, name)} == set()
    assert set(names) <= set(dir(module))
    assert isinstance(module, LazyPackage) or not names or package in ("hedgerow.core", "hedgerow.network.station.sources")


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'momentum'"):
        _ = hedgerow.stats.momentum
    with pytest.raises(ImportError, match="momentum"):
        exec("from hedgerow.stats import momentum")


@pytest.mark.parametrize("first", ["import hedgerow.stats.moments", "from hedgerow.stats import moments", "import hedgerow"])
def test_a_submodule_does_not_hide_a_public_thing_of_its_name(first):
    code = f"{first}\nimport hedgerow.stats.moments, hedgerow\nassert callable(hedgerow.stats.moments)"
    assert "hedgerow.stats.moments" in loaded(code)


def test_submodules_are_there_without_an_import():
    code = "import hedgerow\nassert hedgerow.privacy.accounting.gaussian.gaussian_noise and hedgerow.learn.queries.inputs"
    assert "hedgerow.learn.queries.inputs" in loaded(code)


def test_learning_without_torch_says_what_to_install():
    code = """
sys.modules["torch"] = None
import hedgerow
try:
    hedgerow.learn.fedavg
except hedgerow.errors.MissingExtra as error:
    assert error.code == "HR-105"
else:
    raise AssertionError
"""
    assert "hedgerow.learn.fedavg" not in loaded(code)


TRAINING = """
import numpy, torch
import hedgerow as hr
from hedgerow.learn import evaluate, fedavg, fedsgd, linear, mlp
rng, label = numpy.random.default_rng(0), hr.data.Column("label", "category", levels=("a", "b", "c"), role="target")
schema = hr.data.Schema((hr.data.Column("x", "number", low=0, high=1, shape=(36,)), label))
columns = {"x": rng.random((40, 36)), "label": rng.choice(["a", "b", "c"], 40)}
net = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 6, 6)), torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                          torch.nn.Flatten(), torch.nn.Linear(8, 3))
for parties in (1, 3):
    federation = hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=parties), seed=0)
    for module in (linear(36, 3), mlp(36, [4], 3), net):
        for path in ("auto", "native", "traced", "eager"):
            state = hr.last(fedavg(federation, module, rounds=1, path=path))
    evaluate(federation, net, hr.last(fedsgd(federation, net, rounds=1)))
"""


@pytest.mark.slow
def test_a_party_trains_without_the_compiler_of_torch():
    """It takes a second or more to import, in every process that trains."""
    found = loaded(TRAINING)
    assert {"torch", "hedgerow.learn.descent.recorder"} <= found
    assert not {
        name for name in found if name.partition(".")[0] == "sympy" or name.startswith(("torch._dynamo", "torch._inductor"))
    }


def test_a_renamed_import_and_a_module_are_found(tmp_path, monkeypatch):
    package = tmp_path / "hedge"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "__init__.py").write_text("")
    (package / "leaf.py").write_text("green = 'green'\n")
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nfrom hedgerow.lazy import lazily\nif TYPE_CHECKING:\n    from . import inner\n"
        "    from .leaf import green as leaf\n__all__ = ['inner', 'leaf']\nlazily(__name__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    hedge = import_module("hedge")
    import_module("hedge.leaf")
    assert hedge.leaf == "green"
    assert isinstance(hedge.inner, ModuleType)
    assert {"inner", "leaf"} <= set(dir(hedge))
    for name in [name for name in sys.modules if name.partition(".")[0] == "hedge"]:
        monkeypatch.delitem(sys.modules, name)
