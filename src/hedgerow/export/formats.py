"""The formats, and the file that each writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import save

from hedgerow.errors import CannotWrite, StudyInvalid, suggestion
from hedgerow.store import write_bytes

from .card import model_card
from .folder import RunFolder, read_run


def safetensors(run: RunFolder) -> bytes:
    """Weights, nodes or coefficients, with what is told of them as metadata: epsilon, delta, unit, study, schema."""
    arrays, told = dict(run.arrays), dict(run.about)
    if not arrays:
        arrays, told = {"coef": run.coef()}, told | {"names": json.dumps(list(run.coefficients))}
    if (run.path / "schema.json").exists():
        told["schema"] = json.dumps(run.schema.to_json())
    body: bytes = save(arrays, told)
    return body


def onnx(run: RunFolder) -> bytes:
    """The model as a graph from records to predictions."""
    from .graph import graph

    return graph(run)


def scikit_learn(run: RunFolder) -> bytes:
    """Parameters of an estimator of scikit-learn, which `hedgerow.sklearn.load` reads."""
    from hedgerow.sklearn.files import written

    from .plain import estimator

    return written(estimator(run), run.about)


def card(run: RunFolder) -> bytes:
    """What somebody who is handed the model should know, as Markdown."""
    return model_card(run).encode()


FORMATS: dict[str, tuple[str, Callable[[RunFolder], bytes]]] = {
    "safetensors": ("model.safetensors", safetensors),
    "onnx": ("model.onnx", onnx),
    "sklearn": ("model.sklearn.json", scikit_learn),
    "model-card": ("README.md", card),
}
"""By name: the file that is written by default, in the folder `export` of the run, and what it holds."""


def export(run: str | Path | RunFolder, to: str, output: str | Path | None = None) -> Path:
    """Write what a run released in another format; return where.

    Parameters
    ----------
    run : path or RunFolder
        A run folder.
    to : {"safetensors", "onnx", "sklearn", "model-card"}
    output : path, optional
        A file; by default one in the folder `export` of the run.

    Raises
    ------
    StudyInvalid (HR-101)
        No such format; the run's program has nothing of that form.
    FormulaInvalid (HR-310), SchemaInvalid (HR-409)
        A fit or a tree that reads what the format cannot say: levels, products, functions of columns.
    MissingExtra (HR-105)
        A package is not installed.
    CannotWrite (HR-104)
        The file belongs to the run, or cannot be written.
    """
    if to not in FORMATS:
        raise StudyInvalid(f"no format is called {to!r}.", remedy=suggestion(to, FORMATS))
    found = run if isinstance(run, RunFolder) else read_run(run)
    name, make = FORMATS[to]
    path = found.path / "export" / name if output is None else Path(output)
    if path.resolve().parent == found.path.resolve():
        raise CannotWrite(f"{path} is among the files of the run.", remedy="Choose another folder.", asked=False, says=False)
    body = make(found)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(
            f"{path.parent}: {error.strerror}.", remedy="Choose another --output.", asked=False, says=False
        ) from error
    write_bytes(path, body)
    return path
