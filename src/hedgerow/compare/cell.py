"""One run of a comparison in a process of its own: `python -m hedgerow.compare.cell FOLDER PARENT THREADS [...]`.

The study is read from `study.toml` in the folder. Rounds are followed by who started it in `rounds.jsonl`, and an error is
written to the standard error stream. If the parent is gone, the run stops after its round, as after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hedgerow.errors import HedgerowError
from hedgerow.study.rounds import Progress
from hedgerow.study.runner import run
from hedgerow.study.study import load

from .processes import INTERRUPTED


def main(folder: str, parent: str, threads: str, data_dir: str, resume: str, command: str) -> int:
    """Run the study of a folder; empty texts stand for what is not given."""
    alone = False

    def stop_if_alone(progress: Progress) -> None:
        nonlocal alone
        if os.getppid() != int(parent) and not alone:
            alone = True
            os.kill(os.getpid(), signal.SIGINT)

    try:
        result = run(
            load(Path(folder) / "study.toml"),
            Path(folder),
            data_dir=Path(data_dir) if data_dir else None,
            resume=bool(resume),
            on_progress=stop_if_alone,
            command=command,
            threads=int(threads),
        )
    except HedgerowError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return INTERRUPTED if result.run.stopped == "interrupted" else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
