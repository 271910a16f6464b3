"""Where torch computes a party's local steps and gradients: a choice of whoever runs the process, never of a question.

    hr.learn.use_device("auto")             # this process, and those that it starts
    HEDGEROW_DEVICE=cuda:1 hedgerow ...     # the same, from a shell or a service's unit

Module and records are copied there, and what comes back are float32 arrays of the CPU: clip, integer grid, noise and ledger are
the CPU's, and so are sums of gradients of single records, whose bounds are proved for its arithmetic. Results differ from the
CPU's in last bits. A module is trained by autograd there: the compiled paths are the CPU's.
"""

from __future__ import annotations

import os
from functools import lru_cache

import torch

from hedgerow.errors import SettingsInvalid

VARIABLE = "HEDGEROW_DEVICE"
"""Environment variable with the choice, which processes pass on to those that they start."""

CPU = torch.device("cpu")


def use_device(name: str) -> torch.device:
    """Choose the device of this process and of those that it starts from now on.

    Parameters
    ----------
    name : str
        "cpu", which is the default; "cuda", "cuda:1", "mps" or another device of PyTorch; or "auto": a GPU where PyTorch finds
        one, otherwise the CPU.

    Returns
    -------
    torch.device

    Raises
    ------
    SettingsInvalid (HR-511)
        PyTorch does not compute there.
    """
    found = device_named(name)
    os.environ[VARIABLE] = name
    return found


def device() -> torch.device:
    """The chosen device.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    return device_named(os.environ.get(VARIABLE, "cpu"))


@lru_cache
def device_named(name: str) -> torch.device:
    """The device of a name, on which a number was computed."""
    try:
        found = torch.device(_best() if name == "auto" else name)
        if found.type == "meta":
            raise RuntimeError("it has no numbers")
        float((torch.ones(1).to(found) + 1).cpu())
    except (RuntimeError, AssertionError, NotImplementedError, ValueError, TypeError) as error:
        raise SettingsInvalid(
            f"device is {name!r}, and PyTorch {torch.__version__} does not compute there: {str(error).splitlines()[0]}",
            remedy='Choose "auto" or "cpu", or install PyTorch for this device.',
        ) from error
    return found


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
