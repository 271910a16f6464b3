"""The relay's job: which classes it names, and the folder that FLARE is given."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template

JOB = "hedgerow-relay-"  # the name of a relay job is this and the name of its site


def template(file: str, /, **values: str) -> str:
    """Return a template of `templates/` with its values filled in."""
    text = (resources.files("hedgerow.engines.rails.nvflare") / "templates" / file).read_text()
    return Template(text).substitute(values) if values else text


def write_job(folder: Path, site: str) -> Path:
    """Write the relay job of one site: configuration only, no code. Returns its folder."""
    job = folder / f"{JOB}{site}"
    config = job / "app" / "config"
    config.mkdir(parents=True, exist_ok=True)
    (job / "meta.json").write_text(template("meta.json", name=f"{JOB}{site}", site=site))
    for name in ("config_fed_server.json", "config_fed_client.json"):
        (config / name).write_text(template(name))
    return job
