"""Check that files stay readable in one sitting, that the waist stays small, and that public names exist."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hedgerow"
LONGEST_FILE, LARGEST_WAIST = 400, 2300
ROOMS = (
    "compare",
    "compression",
    "core",
    "crypto",
    "data",
    "engines",
    "learn",
    "privacy",
    "report",
    "stats",
    "store",
    "study",
    "testing",
    "trees",
)


def main() -> int:
    """Print every problem; the exit status is their number."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    problems = [
        f"{path.relative_to(SOURCE)}: {n} lines, at most {LONGEST_FILE}" for path, n in lengths.items() if n > LONGEST_FILE
    ]
    waist = sum(n for path, n in lengths.items() if path.parent == SOURCE / "core")
    if waist >= LARGEST_WAIST:
        problems.append(f"core: {waist} lines, below {LARGEST_WAIST}")
    for room in ("hedgerow", *(f"hedgerow.{room}" for room in ROOMS)):
        module = importlib.import_module(room)
        names = list(getattr(module, "__all__", ()))
        problems += [f"{room}.__all__ names {name!r}, which does not exist" for name in names if not hasattr(module, name)]
        if not names:
            problems.append(f"{room}.__all__ is missing")
    print("\n".join(problems) or f"sizes and names: fine; the waist has {waist} lines")
    return len(problems)


if __name__ == "__main__":
    sys.exit(main())
