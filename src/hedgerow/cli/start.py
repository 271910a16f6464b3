"""Where the `hedgerow` command begins: a version is told before anything large is imported."""

from __future__ import annotations

import sys
from typing import Any

from hedgerow import __version__


def main() -> Any:
    """Run the command."""
    if sys.argv[1:] == ["--version"]:
        print(f"hedgerow {__version__}")
        return
    from hedgerow.cli.main import main as command

    command()
