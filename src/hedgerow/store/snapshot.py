"""Snapshots: files that are replaced whole, so that whatever moment a crash takes leaves the old one or the new one.

    1. write beside the file, NAME.part      the old one is whole
    2. synchronise what was written          the bytes are on the disk before a name refers to them
    3. rename over the file                  one step of the file system
    4. synchronise the folder                the new name stays after a power cut

Arrays are kept as safetensors with JSON beside them: no code in such a file can run.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hedgerow.errors import CannotWrite, CheckpointMismatch

POSIX = os.name == "posix"  # elsewhere folders cannot be opened


def write_bytes(path: str | Path, body: bytes, *, private: bool = False) -> None:
    """Replace a file in one step; return when a power cut cannot bring the old one back.

    Parameters
    ----------
    private : bool
        Let nobody but its owner read the file.

    Raises
    ------
    CannotWrite (HR-104)
        The previous version, if any, is untouched.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        try:
            write_all(descriptor, body)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(part, path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise CannotWrite(
            f"{path}: {error.strerror}. The previous version, if any, is untouched.",
            remedy="Make room or choose another folder, then resume.",
        ) from error


def write_all(descriptor: int, body: bytes) -> None:
    """Write all of these bytes at the place where a descriptor is."""
    rest = memoryview(body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Wait until names in a folder are on the disk, where the system knows how: a replaced file then stays replaced."""
    if not POSIX:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that does not know how
            raise
    finally:
        os.close(descriptor)


def write_arrays(path: str | Path, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Replace a file by arrays and what is told of them, as JSON."""
    body = save(
        {key: np.asarray(value, order="C") for key, value in arrays.items()} or {"empty": np.zeros(0)},
        {"hedgerow": json.dumps(about)},
    )
    write_bytes(path, body)


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_arrays` wrote.

    Raises
    ------
    CheckpointMismatch (HR-103)
        It is no such file.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["hedgerow"])
            names = [key for key in file.keys() if key != "empty"]  # noqa: SIM118
            return {key: file.get_tensor(key) for key in names}, about
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CheckpointMismatch(
            f"{path} is not a checkpoint of Hedgerow: {error}.", remedy="Start afresh in another folder."
        ) from error
