"""Models as ONNX graphs, from records to predictions.

    a module      X, the features in their order: (n, d) numbers, a category as the number of its level; or one array-shaped
                  column (n, *shape)   ->   how training scaled them   ->   the module   ->   `probabilities` or `value`
    a fit, a tree X (n, d)   ->   what skl2onnx makes of the estimator of scikit-learn

What is told of a run's model in other formats is in the graph's metadata.
"""

from __future__ import annotations

import io
import json
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import MissingExtra

if TYPE_CHECKING:
    from .folder import RunFolder


def graph(run: RunFolder) -> bytes:
    """Return a run's model as an ONNX file.

    Raises
    ------
    StudyInvalid (HR-101)
        The run's program has none.
    MissingExtra (HR-105)
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtra("an ONNX graph needs onnx.", remedy="pip install 'hedgerow[onnx]'") from None
    made, told = of_module(run) if "model" in run.program.keys else of_estimator(run)
    found = onnx.load_model_from_string(made)
    for key, value in (run.about | told).items():
        found.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(found)
    body: bytes = found.SerializeToString()
    return body


def of_estimator(run: RunFolder) -> tuple[bytes, dict[str, str]]:
    """A fit or a tree, by skl2onnx."""
    from .plain import estimator

    made = estimator(run)
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError:
        raise MissingExtra("a fit as an ONNX graph needs skl2onnx.", remedy="pip install 'hedgerow[onnx]'") from None
    kind = FloatTensorType if hasattr(made, "tree_") else DoubleTensorType  # trees of scikit-learn compare in single precision
    options = {"zipmap": False} if hasattr(made, "classes_") else None
    names = [str(name) for name in made.feature_names_in_]
    with quiet():
        found = to_onnx(made, initial_types=[("X", kind([None, len(names)]))], options=options)
    return found.SerializeToString(), {"features": json.dumps(names)}


def of_module(run: RunFolder) -> tuple[bytes, dict[str, str]]:
    """A module, made again from the study, with the run's weights."""
    import torch

    from .module import reader

    module, example, told = reader(run)
    batch = torch.export.Dim("n")
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "model.onnx"
        exported: Any = torch.onnx.export(
            module,
            (example,),
            input_names=["X"],
            output_names=[module.output],
            dynamic_shapes=({0: batch},),
            verbose=False,
        )
        exported.save(str(path))
        return path.read_bytes(), told


@contextmanager
def quiet() -> Iterator[None]:
    """Keep to themselves what exporters say of other packages and of their own progress."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
