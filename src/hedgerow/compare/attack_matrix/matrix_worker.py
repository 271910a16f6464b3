"""Some runs of a matrix in a process of its own: `python -m ...attack_matrix.matrix_worker FOLDER PARENT NAME DATA`.

The study is read from `study.toml` in the folder, and the numbers of the cells from the standard input. Each run adds a line to
the process's own file. If the parent is gone, it stops after its run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hedgerow.errors import HedgerowError
from hedgerow.study.study import load

from ..processes import INTERRUPTED
from ..records import SharedRecords
from .matrix_cells import matrix_cells
from .matrix_runs import run_cells


def main(folder: str, parent: str, name: str, data_dir: str) -> int:
    """Run cells; an empty text stands for no folder of data."""
    try:
        at, numbers = Path(folder), json.load(sys.stdin)
        study = load(at / "study.toml")
        assert study.matrix is not None
        cells, records = matrix_cells(study), SharedRecords(Path(data_dir) if data_dir else None)
        own = (cells[number] for number in numbers)
        run_cells(own, at / f"runs-{name}.jsonl", records, study.matrix.last, lambda _: os.getppid() != int(parent), threads=1)
    except HedgerowError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
