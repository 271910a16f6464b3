"""The module of a run with its weights, which reads records as they are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.errors import ModelInvalid
from hedgerow.learn.private.results import module_of_inputs
from hedgerow.learn.private.views import step_of
from hedgerow.learn.reading import Reading
from hedgerow.learn.results import module_for
from hedgerow.learn.scale import scale_for

if TYPE_CHECKING:
    from .folder import RunFolder


class Predictor(nn.Module):
    """A module behind what training did to records, and before what makes predictions of its outputs.

    Attributes
    ----------
    output : str
        `probabilities` of the classes (n, K), or `value` (n,).
    """

    def __init__(self, module: nn.Module, reading: Reading, kind: str, *, single: bool) -> None:
        super().__init__()
        self.module, self.reading, self.kind, self.single = module, reading, kind, single
        self.output = "value" if kind == "number" else "probabilities"

    def forward(self, X: Tensor) -> Tensor:
        outputs = self.module(self.inputs(X))
        if self.kind == "category":
            return torch.softmax(outputs, -1)
        outputs = outputs.reshape(-1)  # a length would be that of the example in a graph
        if self.kind == "binary":
            return torch.stack([torch.sigmoid(-outputs), torch.sigmoid(outputs)], -1)
        return outputs

    def inputs(self, X: Tensor) -> Tensor:
        """What the module was trained on, from records as they are kept."""
        if self.single:
            return (X - self.reading.low) * self.reading.by
        parts = []
        for i, (taken, levels) in enumerate(zip(self.reading.ranges, self.reading.levels, strict=True)):
            column = X[:, i : i + 1]
            if levels:
                parts.append((column == torch.arange(len(levels), dtype=X.dtype)).to(torch.float32))
            else:
                parts.append((column if taken is None else (column - taken[0]) / taken[1]).to(torch.float32))
        return torch.cat(parts, 1)


def reader(run: RunFolder) -> tuple[Predictor, Tensor, dict[str, str]]:
    """The module of a run, an example of its input, and what is told of its features.

    Raises
    ------
    StudyInvalid (HR-101), ModelInvalid (HR-510)
        The run kept no weights, or those of another module; features that no single input holds.
    """
    settings, schema = run.settings, run.schema
    if not reads_columns(run):
        raise run.no("module that reads records as they are kept")
    module = module_for(schema, settings)
    held_out = settings.get("held_out")
    features = tuple(settings.get("features") or [name for name in schema.features if name != held_out])
    weights = {name: np.asarray(value) for name, value in run.arrays.items()}
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    if not trained <= weights.keys() or any(shapes.get(name) != value.shape for name, value in weights.items()):
        raise ModelInvalid(
            f"the arrays of {run.path} are not the parameters of the model {settings['model']!r}.",
            remedy="Export them as they are: --to safetensors.",
        )
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()}, strict=False)
    reading = Reading.of(schema, features, scale_for(module, settings.get("scale", "ranges")))
    columns = [schema[name] for name in features]
    single = len(columns) == 1 and bool(columns[0].shape) and columns[0].kind != "category"
    if not single and any(column.shape for column in columns):
        raise ModelInvalid(
            "the module reads arrays and single numbers joined, which no single input holds as they are kept.",
            remedy="Export the weights: --to safetensors.",
        )
    target = schema[schema.target] if schema.target else None
    kind = target.kind if target is not None and target.kind in ("category", "binary") else "number"
    rows: Any = schema.synthetic(2, np.random.default_rng(0))
    example = rows[features[0]].astype(np.float32) if single else np.stack([rows[name] for name in features], 1).astype(float)
    classes = list(target.levels or ("0", "1")) if target is not None and kind != "number" else []
    levels = {column.name: list(column.levels) for column in columns if column.levels}
    told = {"features": json.dumps(features), "levels": json.dumps(levels), "classes": json.dumps(classes)}
    return Predictor(module, reading, kind, single=single).eval(), torch.from_numpy(example), told


def reads_columns(run: RunFolder) -> bool:
    """Whether a program's module reads the columns as they are, neither a task's inputs nor what the program makes of them."""
    made_by = run.program.bind.get("module")
    unchanged = made_by is module_of_inputs and step_of(run.schema, run.settings["inputs"]) is None
    return run.settings.get("task") is None and (made_by is module_for or unchanged)
