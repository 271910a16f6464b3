"""What a kit says about its own end of the relay: `local/hedgerow.json`, which no job can change.

    {"socket": "/run/hedgerow/alpha.sock"}

The path stands in the kit, not in the job: a job comes from elsewhere and must not choose what this machine connects to.
"""

from __future__ import annotations

import json
from pathlib import Path

from hedgerow.errors import ConfigInvalid

FILE = "hedgerow.json"
LONGEST_PATH = 100  # bytes; a Unix socket's address holds 107


def write(folder: Path, socket: Path) -> None:
    """Write `hedgerow.json` in a kit's `local` folder.

    Raises
    ------
    ConfigInvalid (HR-601)
        The path is not absolute or too long for a Unix socket.
    """
    if not socket.is_absolute() or len(str(socket).encode()) > LONGEST_PATH:
        raise ConfigInvalid(
            f"{str(socket)!r} cannot be the path of a Unix socket: absolute, at most {LONGEST_PATH} bytes.",
            remedy="Choose a short absolute path, such as /run/hedgerow/alpha.sock.",
        )
    (folder / FILE).write_text(json.dumps({"socket": str(socket)}, indent=1) + "\n")


def read(folder: Path) -> Path:
    """Return the path of the socket that this kit's end of the relay connects to.

    Raises
    ------
    ConfigInvalid (HR-601)
        The file is missing or does not name a socket.
    """
    try:
        path = json.loads((folder / FILE).read_text())["socket"]
    except (OSError, ValueError, KeyError, TypeError):
        path = None
    if not isinstance(path, str) or not path.startswith("/"):
        raise ConfigInvalid(
            f"{folder / FILE} does not name a socket.", remedy='Write in it: {"socket": "/run/hedgerow/NAME.sock"}'
        )
    return Path(path)
