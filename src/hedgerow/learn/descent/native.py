"""The native path: a whole descent of plain SGD on a stack of linear layers in compiled code, where it was built."""

from __future__ import annotations

import numpy as np

from hedgerow.core.party import Party

from ..models import Model
from . import kernel
from .correction import Correction
from .solver import Solver


def change(x: np.ndarray, party: Party, plan: np.ndarray, model: Model, solver: Solver, terms: Correction) -> np.ndarray | None:
    """Take all steps of one party in the kernel; return the change of shape (d,), or None where the kernel does not fit."""
    if model.task is not None or solver.adversary is not None:
        return None
    inputs = np.ascontiguousarray(party["model_input"])
    if not (kernel.available and solver.rule == "sgd" and terms.affine and inputs.dtype in (np.float32, np.uint8)):
        return None
    if "native" not in model.programs:
        model.programs["native"] = kernel.fits(model.module, model.kind)
    stack = model.programs["native"]
    if stack is None or inputs[0].size != stack.widths[0]:
        return None
    made = np.empty(stack.size, np.float32)
    towards = x if terms.towards is None else terms.towards
    kernel.descend(
        stack,
        model.kind,
        weights=made,
        inputs=inputs,
        target=np.ascontiguousarray(party["model_target"]),
        record_weights=np.asarray(party.w, np.float32),
        plan=plan,
        learning_rates=np.full(len(plan), solver.learning_rate, np.float32),
        origin=x,
        start=np.ascontiguousarray(towards, np.float32) if terms.pull else None,
        shift=None if terms.shift is None else np.ascontiguousarray(terms.shift, np.float32),
        low=model.low,
        scale=model.scale,
        pull=terms.pull,
    )
    return made
