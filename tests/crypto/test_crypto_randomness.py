"""No file of the room takes randomness from a generator that can be predicted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hedgerow.crypto

ROOM = Path(hedgerow.crypto.__file__).parent
FILES = sorted(ROOM.rglob("*.py"))


def predictable(source: str) -> list[int]:
    """The lines that import `random` or `numpy.random`, or reach for a `random` of numpy."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"numpy.{node.attr}"] if node.value.id in ("np", "numpy") else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            first = node.args[0] if node.args else None
            dynamic = called in ("__import__", "import_module") and isinstance(first, ast.Constant)
            names = [str(first.value)] if dynamic and isinstance(first, ast.Constant) else []
        else:
            continue
        if any(name.split(".")[0] == "random" or name.split(".")[:2] == ["numpy", "random"] for name in names):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOM)))
def test_T2_the_room_draws_nothing_that_can_be_predicted(file):
    assert predictable(file.read_text(encoding="utf-8")) == []


def test_T2_the_room_was_read():
    assert {"keys.py", "streams.py", "shamir.py", "paillier.py"} <= {file.name for file in FILES}


@pytest.mark.parametrize(
    "twin",
    [
        "import random",
        "import random as rng",
        "from random import randbytes",
        "import numpy.random",
        "import numpy.random as rng",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nmask = np.random.default_rng(seed).integers(2**32)",
        "def f():\n    import numpy\n    return numpy.random.rand(3)",
        "rng = __import__('random')",
        "import importlib\nrng = importlib.import_module('numpy.random')",
    ],
)
def test_T2_what_can_be_predicted_is_found(twin):
    assert predictable(twin)


@pytest.mark.parametrize(
    "lawful",
    ["import secrets", "from hedgerow.core.randomness import Entropy", "from .random import x", "randomness = a.random"],
)
def test_T2_what_only_sounds_alike_is_left_alone(lawful):
    assert not predictable(lawful)
