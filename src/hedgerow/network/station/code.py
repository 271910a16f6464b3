"""Which code would run: versions, and one hash over the sources that a question may name."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from hedgerow.errors import ConfigInvalid


@lru_cache
def installed_version() -> str:
    """The version of Hedgerow here."""
    return version("hedgerow")


@lru_cache
def code_hash(modules: tuple[str, ...] = ()) -> str:
    """Return `sha256:...` over Hedgerow as a whole and the packages that a guard lets questions name besides.

    It covers every `.py` file below each package, by its path in the package and its bytes, in the order of the paths. What
    Python itself and other libraries do is not in it: those are pinned where the station is installed.
    """
    state = hashlib.sha256(b"hedgerow code\0")
    for package in ("hedgerow", *sorted(modules)):
        for name, path in _sources(package):
            body = path.read_bytes()
            state.update(f"{name}\0{len(body)}\0".encode() + body)
    return f"sha256:{state.hexdigest()}"


def _sources(package: str) -> list[tuple[str, Path]]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigInvalid(
            f"guard.modules names {package!r}, which is not installed here.", remedy="Install it, or leave it out."
        )
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        return [(package, origin)]
    files = [path for path in origin.parent.rglob("*.py") if "__pycache__" not in path.parts]
    return sorted((f"{package}/{path.relative_to(origin.parent).as_posix()}", path) for path in files)
