"""The extension may be missing, is chosen by name, and refuses what it cannot read."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hedgerow.learn.rowwise import compiled, kernels

needs_extension = pytest.mark.skipif(not compiled.available, reason="the extension was not compiled at installation")


def test_without_the_extension_there_is_numpy(monkeypatch):
    package = sys.modules["hedgerow.learn.rowwise"]
    monkeypatch.delattr(package, "_rows", raising=False)
    monkeypatch.setitem(sys.modules, "hedgerow.learn.rowwise._rows", None)
    spec = importlib.util.spec_from_file_location("hedgerow.learn.rowwise.compiled_again", Path(compiled.__file__))
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, again)  # where its data class looks for it
    spec.loader.exec_module(again)
    assert not again.available
    assert again.paths == ()


@pytest.mark.slow
@pytest.mark.parametrize("path", kernels.paths)
def test_the_environment_chooses_a_way(path):
    code = "from hedgerow.learn.rowwise import kernels; print(kernels.path())"
    environment = {"HEDGEROW_ROWS": path, "PYTHONPATH": str(Path(compiled.__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == path


def test_what_was_packed_for_one_way_is_multiplied_in_it():
    """A right operand keeps its way: `using` decides when it is packed."""
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    for path in kernels.paths:
        with kernels.using(path):
            ready = kernels.packed(b)
        assert kernels.multiply(a, ready).tolist() == [[3, 3], [3, 3]]


def calls():
    """For each function of the extension, arrays and sizes of which one does not fit."""
    f, i, h, l, d = np.zeros(6, np.float32), np.zeros(6, np.int32), np.zeros(6, np.int16), np.zeros(6, np.int64), np.zeros(6)
    return {
        "pack": ((f, f[:5]), (2, 3, 0)),
        "multiply": ((f, f[:5], None, f), (2, 3, 2, 0)),
        "gathered": ((f, l[:2], l[:3], f[:1], None, f), (1, 6, 2, 3, 2, 0)),
        "outer_gathered": ((f, l[:2], l[:3] + 4, f[:4], f), (1, 4, 2, 3, 2)),
        "add_outer": ((h, h, l[:3]), (3, 2, 2)),
        "squares": ((f, d), (3, 2)),
        "summed": ((f, f[:1]), (1, 3, 2)),
        "whole": ((f, h, d[:2], l[:2]), (2, 3, 1)),
        "lengths": ((f, d[:2], l[:2], d), (2, 3)),
        "shorten": ((f, d[:2], d[:2], l[:1], None, h, l[:2]), (2, 3)),
        "steps": ((f, d[:2], i, l), (2, 3)),
        "add_steps": ((i, l), (2, 3)),
        "exp64": ((d, d[:5].copy()), (6,)),
        "elementwise": ((f, None, f.copy()), (9, 6)),
        "softmax_slopes": ((f, l, f.copy()), (2, 3)),
        "max_pool": ((f, l[:2] + 3, f[:2].copy(), i[:2]), (1, 3, 2, 1, 2)),
        "max_pool_slopes": ((f[:2], i[:2] + 9, f.copy()), (1, 1, 3, 2)),
    }


@needs_extension
@pytest.mark.parametrize("name", calls())
def test_arrays_that_do_not_fit_are_refused(name):
    arrays, sizes = calls()[name]
    function = getattr(compiled._rows, name)
    with pytest.raises(ValueError, match="do not fit"):
        function(0, arrays, sizes, 1.0)
    with pytest.raises(ValueError, match="not how"):
        function(len(compiled.paths), arrays, sizes, 1.0)
    with pytest.raises(ValueError, match="not how"):
        function(0, arrays[1:], sizes, 1.0)
    with pytest.raises(ValueError, match=r"2\^30"):
        function(0, arrays, (*sizes[:-1], 1 << 30), 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        function(0, arrays, ((1 << 30) - 1,) * len(sizes), 1.0)
    frozen = arrays[-1].copy()
    frozen.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        function(0, (*arrays[:-1], frozen), sizes, 1.0)
