"""Kits for NVIDIA FLARE that can do one thing: carry sealed bodies.

    folder/server/     the relay's server, beside the coordinator
    folder/SITE/       one for each site
    folder/submitter/  in whose name the supervisor submits relay jobs
    folder/project/    FLARE's own record of the project, with the private key of its certificate authority

What FLARE would allow and these kits do not: classes other than the relay's two, code that comes with a job, unsigned jobs,
logs that travel to the server, shell commands, downloads of job folders, storage in the system's temporary folder.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.engines.rails.nvflare import need_nvflare, settings
from hedgerow.engines.rails.nvflare.kit import template
from hedgerow.errors import CannotWrite, ConfigInvalid

CHATTY = (  # what speaks a dozen lines for every body that is carried
    "nvflare.private.fed.client.client_runner.ClientRunner",
    "nvflare.private.fed.client.fed_client.FederatedClient",
    "nvflare.private.fed.client.communicator.Communicator",
    "nvflare.private.fed.server.server_runner.ServerRunner",
    "nvflare.private.fed.server.server_commands.GetTaskCommand",
    "nvflare.private.fed.server.server_commands.SubmitUpdateCommand",
    "nvflare.apis.impl.wf_comm_server.WFCommServer",
)
SUBMITTER = "relay@hedgerow.local"  # FLARE wants the form of an address; nothing is sent there


def provision(
    folder: Path,
    sites: Mapping[str, Path],
    *,
    coordinator: Path,
    server: str = "localhost",
    port: int = 8002,
    organisation: str = "coordinator",
    scheme: str = "http",
) -> dict[str, Path]:
    """Write kits that are ready to start.

    Parameters
    ----------
    folder : Path
        A folder that does not exist yet, or is empty.
    sites : mapping of str to Path
        Each site's name, which is its station's, and the Unix socket that the station listens on at that site.
    coordinator : Path
        The Unix socket that the coordinator listens on at the server.
    server : str
        The host name that sites reach the server by.
    port : int
        The server's only port; sites open none.
    organisation : str
        Who runs the server.
    scheme : {"http", "grpc", "tcp"}
        What FLARE speaks inside its mutual TLS.

    Returns
    -------
    dict of str to Path
        The folder of each kit: every site's name, "server" and "submitter".

    Raises
    ------
    ConfigInvalid (HR-601)
        A name or a path cannot be used.
    CannotWrite (HR-104)
        The folder is not empty.
    MissingExtra (HR-105)
        NVIDIA FLARE is not installed.
    """
    need_nvflare()
    from nvflare.lighter.provision import prepare_builders, prepare_project
    from nvflare.lighter.provisioner import Provisioner
    from nvflare.lighter.utils import load_yaml

    folder = folder.resolve()
    _check(folder, sites, server, organisation, scheme)
    work = folder / "project"
    work.mkdir(parents=True, exist_ok=True)
    owners = {site: re.sub("[^A-Za-z0-9]", "_", site) for site in sites}
    lines = [f"  - {{name: {site}, type: client, org: {owner}}}" for site, owner in owners.items()]
    (work / "project.yml").write_text(
        template(
            "project.yml",
            project="hedgerow",
            server=server,
            port=str(port),
            organisation=organisation,
            submitter=SUBMITTER,
            scheme=scheme,
            sites="\n".join(lines),
        )
    )
    project = load_yaml(str(work / "project.yml"))
    Provisioner(str(work), prepare_builders(project)).provision(prepare_project(project))
    made = max((work / "hedgerow").glob("prod_*"))
    kits = {}
    for name, kit in {"server": server, "submitter": SUBMITTER, **{site: site for site in sites}}.items():
        kits[name] = Path(shutil.copytree(made / kit, folder / name))
    shutil.rmtree(made)
    for kit in (work, *kits.values()):
        kit.chmod(0o700)
    restrict(kits["server"], coordinator, n_sites=len(sites))
    for site, path in sites.items():
        restrict(kits[site], path)
    return kits


def restrict(kit: Path, socket: Path, n_sites: int | None = None) -> None:
    """Write the policy of a site's kit, or of the server's where `n_sites` is given, and which socket its relay uses.

    It changes `local` only, so it can be used on a kit that was made elsewhere.

    Parameters
    ----------
    kit : Path
        The kit's folder, with `startup` and `local` in it.
    socket : Path
        The Unix socket that this end's relay connects to.
    n_sites : int, optional
        For the server: how many sites there are, each with a job of its own.
    """
    local = kit / "local"
    rules = json.loads((local / "resources.json.default").read_text())
    rules.update(json.loads(template("policy.json")))
    rules["components"] = [part for part in rules["components"] if part["id"] != "site_log_streamer"]
    if n_sites is not None:
        _serve(rules, kit.resolve() / "storage", n_sites)
    (local / "resources.json").write_text(json.dumps(rules, indent=1) + "\n")
    (local / "authorization.json").write_text(template("authorization.json"))
    spoken = json.loads((local / "log_config.json.default").read_text())
    spoken["loggers"].update({name: {"level": "WARNING"} for name in CHATTY})
    (local / "log_config.json").write_text(json.dumps(spoken, indent=1) + "\n")
    settings.write(local, socket)
    for secret in (kit / "startup").glob("*.key"):
        secret.chmod(0o600)


def _serve(rules: dict[str, Any], storage: Path, n_sites: int) -> None:
    """Keep the server's files in its kit, forget a dead site soon, and let every site's job run at once."""
    parts = {part["id"]: part for part in rules["components"]}
    parts["job_manager"]["args"]["uri_root"] = str(storage / "jobs")
    parts["job_scheduler"]["args"] = {"max_jobs": 2 * n_sites + 4, "min_schedule_interval": 1.0, "max_schedule_interval": 5.0}
    rules["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(storage / "snapshots")
    for server in rules["servers"]:
        server["heart_beat_timeout"] = 30


def _check(folder: Path, sites: Mapping[str, Path], server: str, organisation: str, scheme: str) -> None:
    if not sites:
        raise ConfigInvalid("no site was named.", remedy="Name every station: --site alpha=/run/hedgerow/alpha.sock")
    for word in sites:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", word):
            raise ConfigInvalid(f"{word!r} cannot be a site's name: letters, digits, hyphens, underscores; at most 63.")
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", server):
        raise ConfigInvalid(f"{server!r} is not a host name.")
    if not re.fullmatch(r"[A-Za-z0-9_]{1,63}", organisation):
        raise ConfigInvalid(f"{organisation!r} cannot be an organisation's name: letters, digits, underscores; at most 63.")
    for taken in {"server", "submitter", "project", server} & set(sites):
        raise ConfigInvalid(f"a site cannot be called {taken!r}: the server's folders have that name.")
    if scheme not in ("http", "grpc", "tcp"):
        raise ConfigInvalid(f"scheme {scheme!r} is not known.", remedy="Choose http, grpc or tcp.")
    if folder.exists() and any(folder.iterdir()):
        raise CannotWrite(f"{folder} is not empty.", remedy="Choose a folder that does not exist yet.")


def main(words: Sequence[str] | None = None) -> None:
    """Run `python -m hedgerow.engines.rails.nvflare provision FOLDER --site alpha=/run/hedgerow/alpha.sock ...`."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow.engines.rails.nvflare", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("provision", help="write the kits of a server and its sites")
    new.add_argument("folder", type=Path)
    new.add_argument(
        "--site", action="append", default=[], metavar="NAME=SOCKET", help="a station and the socket it listens on"
    )
    new.add_argument("--coordinator", type=Path, required=True, metavar="SOCKET", help="the socket the coordinator listens on")
    new.add_argument("--server", default="localhost", help="host name that sites reach the server by")
    new.add_argument("--port", type=int, default=8002)
    new.add_argument("--organisation", default="coordinator", help="who runs the server")
    new.add_argument("--scheme", default="http", help="http, grpc or tcp, inside mutual TLS")
    old = commands.add_parser("restrict", help="write our policy into a kit that was provisioned elsewhere")
    old.add_argument("kit", type=Path)
    old.add_argument("--socket", type=Path, required=True)
    old.add_argument("--server-of", type=int, metavar="N", help="the kit is the server's, of so many sites")
    asked = parser.parse_args(words)
    if asked.command == "restrict":
        restrict(asked.kit, asked.socket, asked.server_of)
        print(f"{asked.kit / 'local'}: the relay's two classes only, no code in jobs, no logs leave")
        return
    sites = {}
    for word in asked.site:
        name, found, socket = word.partition("=")
        sites[name] = Path(socket if found else f"/run/hedgerow/{name}.sock")
    kits = provision(
        asked.folder,
        sites,
        coordinator=asked.coordinator,
        server=asked.server,
        port=asked.port,
        organisation=asked.organisation,
        scheme=asked.scheme,
    )
    for name, kit in kits.items():
        print(f"{name:12} {kit}")
