"""A package of somebody else's, as an installer leaves it: modules on the path, and a folder that names entry points."""

import sys
from contextlib import contextmanager
from importlib import invalidate_caches

from hedgerow.study import catalogue, registry


@contextmanager
def installed(folder, name, modules, programs, monkeypatch):
    """Install a package: `modules` by name without suffix, `programs` by name with their `module:function`."""
    package = folder / name
    package.mkdir(parents=True)
    for module, text in {"__init__": "", **modules}.items():
        (package / f"{module}.py").write_text(text, encoding="utf-8")
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "\n".join(f"{program} = {path}" for program, path in programs.items())
    (about / "entry_points.txt").write_text(f"[hedgerow.programs]\n{points}\n")
    monkeypatch.syspath_prepend(str(folder))
    forget()
    try:
        yield package
    finally:
        monkeypatch.undo()
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]
        forget()


def forget():
    """Look for installed packages anew."""
    invalidate_caches()
    registry.others.cache_clear()
    catalogue._declaration.cache_clear()
