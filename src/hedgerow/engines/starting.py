"""Starting a process of this package, which talks over a pipe and ends with the process that started it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence

from .pipes import Pipe, pair

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 27)}
"""Large arrays of a round use the memory of those before, which the system would have to clear anew."""


def started(
    module: str, arguments: Sequence[str] = (), *, threads: int | None = None, descriptors: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], Pipe]:
    """Start `python -m module DESCRIPTOR arguments` with this program's import path; return the process and the pipe to it.

    Parameters
    ----------
    threads : int, optional
        Of numerical libraries in that process; as many as they choose if not given.
    descriptors : sequence of int
        Of files that it inherits under their numbers.

    Raises
    ------
    RailUnavailable (HR-612)
        Sockets of this system carry no descriptors.
    """
    here, there = pair()
    with there:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        chosen = {} if threads is None else dict.fromkeys(THREADS, str(threads))
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(there.fileno()), *arguments],
            env=MEMORY | os.environ | chosen | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            pass_fds=[there.fileno(), *descriptors],
            stdin=subprocess.DEVNULL,
        )
    return process, Pipe(here)


def end_with(descriptor: int) -> None:
    """Wait until the other end of a pipe is closed, then end this process, whatever it is doing; for a thread."""
    hung_up = select.poll()
    hung_up.register(descriptor, getattr(select, "POLLRDHUP", 0))
    hung_up.poll()
    os._exit(0)
