"""One step of DP-SGD beside the same step without privacy and beside Opacus: batches of 600, perceptron 784-200-200-10.

    python benchmarks/dpsgd.py --peers FOLDER --repetitions 5
    python benchmarks/dpsgd.py --network cnn                       McMahan's CNN, batches of 100

FOLDER/opacus is a virtual environment with `torch==2.13.0 opacus==1.6.0`. Each repetition runs every contender once, each in
its own process with one thread, and ratios are taken within a repetition. Seconds are of the processor, which a busy machine
lengthens less than those of the clock. Ours is the exact sum with noise on its grid, as `hedgerow.learn.records.dpsgd` releases
it, with and without the compiled kernels. Sums by torch, which no mechanism uses, and Opacus have floating-point normals for
noise. Before the clock starts each contender takes a step without noise, and these are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

RECORDS, RATE, CLIP, NOISE = 6_000, 0.1, 1.0, 1.0
PLAIN, OURS, SILENT, NUMPY, TOGETHER = (
    "without privacy",
    "hedgerow",
    "hedgerow, no noise",
    "hedgerow, no compiler",
    "sums by torch",
)
GHOST, HOOKS = "Opacus ghost", "Opacus hooks"
FOREIGN = (GHOST, HOOKS)
Step = Callable[[torch.Tensor, torch.Tensor, float, float], None]


def perceptron() -> nn.Sequential:
    """McMahan's "2NN"."""
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def cnn() -> nn.Sequential:
    """McMahan's CNN for digits."""
    first = [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


NETWORKS: dict[str, tuple[Callable[[], nn.Sequential], int]] = {"perceptron": (perceptron, 600), "cnn": (cnn, 100)}
"""Networks, and records of a batch."""


def made(name: str) -> nn.Sequential:
    """A network with fixed initial weights."""
    torch.manual_seed(2)
    return NETWORKS[name][0]()


def records() -> tuple[torch.Tensor, torch.Tensor]:
    """Images of ten classes, drawn from a fixed seed."""
    rng = np.random.default_rng(0)
    shown = (rng.random((10, 784)) < 0.2) * rng.uniform(0.3, 1.0, (10, 784))
    y = rng.integers(0, 10, RECORDS)
    x = np.clip(shown[y] * (rng.random((RECORDS, 784)) < 0.7) + rng.normal(0, 0.15, (RECORDS, 784)), 0, 1)
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


def without_privacy(net: nn.Module) -> Step:
    parameters = list(net.parameters())

    def step(x: torch.Tensor, y: torch.Tensor, noise: float, rate: float) -> None:
        slopes = torch.autograd.grad(F.cross_entropy(net(x), y), parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, slopes, alpha=-rate)

    return step


def ours(net: nn.Module, batch: int, *, path: str | None = None, exact: bool = True, silent: bool = False) -> Step:
    from hedgerow.core.randomness import Stream
    from hedgerow.learn.models import Model
    from hedgerow.learn.records import Clipping, RecordPlan, clipped_sum
    from hedgerow.learn.rowwise import kernels

    model, clipping, w, entropy = Model(net, "category"), Clipping.of(CLIP), torch.ones(batch), Stream(None).entropy
    plan = RecordPlan(clipping, NOISE, batch / RECORDS, 1)
    flat = torch.from_numpy(model.initial)

    def step(x: torch.Tensor, y: torch.Tensor, noise: float, rate: float) -> None:
        with kernels.using(path or kernels.path()):
            total, _ = clipped_sum(model, flat, x, y, w, clipping, exact=exact)
        if noise and not silent:
            total = torch.from_numpy(plan.noisy(total.numpy(), entropy)) if exact else total.add_(torch.randn(len(total)))
        flat.sub_(total, alpha=rate / batch)
        if not noise:
            nn.utils.vector_to_parameters(flat, net.parameters())

    return step


def opacus(net: nn.Module, batch: int, mode: str) -> Step:
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    given: dict[str, Any] = {
        "module": net,
        "optimizer": torch.optim.SGD(net.parameters(), lr=RATE),
        "data_loader": DataLoader(TensorDataset(*records()), batch_size=batch),
        "noise_multiplier": NOISE,
        "max_grad_norm": CLIP,
        "poisson_sampling": False,
        "grad_sample_mode": mode,
    }
    criterion: Any = nn.CrossEntropyLoss()
    if mode == "ghost":
        wrapped, optimizer, criterion, _ = PrivacyEngine().make_private(criterion=criterion, **given)
    else:
        wrapped, optimizer, _ = PrivacyEngine().make_private(**given)

    def step(x: torch.Tensor, y: torch.Tensor, noise: float, rate: float) -> None:
        optimizer.noise_multiplier, optimizer.param_groups[0]["lr"] = noise, rate
        optimizer.zero_grad()
        criterion(wrapped(x), y).backward()
        optimizer.step()

    return step


CONTENDERS: dict[str, Callable[[nn.Module, int], Step]] = {
    PLAIN: lambda net, batch: without_privacy(net),
    OURS: ours,
    SILENT: lambda net, batch: ours(net, batch, silent=True),
    NUMPY: lambda net, batch: ours(net, batch, path="numpy"),
    TOGETHER: lambda net, batch: ours(net, batch, exact=False),
    GHOST: lambda net, batch: opacus(net, batch, "ghost"),
    HOOKS: lambda net, batch: opacus(net, batch, "hooks"),
}


def one(name: str, network: str, steps: int) -> None:
    """Run one contender in this process; print seconds of a step, and a fingerprint of a step without noise."""
    torch.set_num_threads(1)
    net, batch, (x, y) = made(network), NETWORKS[network][1], records()
    began = torch.cat([p.detach().flatten() for p in net.parameters()])
    step = CONTENDERS[name](net, batch)
    step(x[:batch], y[:batch], 0.0, 100.0)  # far, so that the rounding of weights does not hide a difference
    moved = torch.cat([p.detach().flatten() for p in net.parameters()]) - began
    step = CONTENDERS[name](made(network), batch)
    seconds = []
    for i in range(steps + 2):
        rows = slice(i * batch % RECORDS, i * batch % RECORDS + batch)
        start = time.process_time()
        step(x[rows], y[rows], NOISE, RATE)
        seconds.append(time.process_time() - start)
    probe = torch.randn(len(moved), 16, generator=torch.Generator().manual_seed(5))
    print(
        json.dumps({"seconds": statistics.median(seconds[2:]), "moved": (moved @ probe).tolist(), "size": float(moved.norm())})
    )


def run(name: str, network: str, python: str, steps: int) -> dict[str, Any]:
    command = [python, __file__, "--one", name, "--network", network, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run every contender in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--network", choices=NETWORKS, default="perceptron")
    parser.add_argument("--one", choices=CONTENDERS)
    options = parser.parse_args()
    if options.one:
        return one(options.one, options.network, options.steps)
    foreign = options.peers / "opacus" / "bin" / "python" if options.peers else None
    if foreign is None:
        print("Without --peers FOLDER, Opacus is left out: python -m venv FOLDER/opacus, then pip install torch opacus there.")
    names = [name for name in CONTENDERS if foreign or name not in FOREIGN]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.repetitions):
        for name in names:
            steps = max(2, options.steps // 10) if name == HOOKS else options.steps
            found[name].append(run(name, options.network, str(foreign) if name in FOREIGN else sys.executable, steps))
    reference, batch = np.array(found[TOGETHER][0]["moved"]), NETWORKS[options.network][1]
    print(f"{options.network}, {batch} records, one thread; medians of {options.repetitions} times {options.steps} steps")
    for name in names:
        times = [row["seconds"] for row in found[name]]
        ratios = sorted(a / b["seconds"] for a, b in zip(times, found[PLAIN], strict=True))
        off = np.linalg.norm(np.array(found[name][0]["moved"]) - reference) / np.linalg.norm(reference)
        same = "" if name == PLAIN else f"   step without noise differs by {off:.1e}"
        told = f"{statistics.median(ratios):6.2f} of the step without privacy, {ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"  {name:22s} {1e3 * statistics.median(times):8.2f} ms   {told}{same}")
    return None


if __name__ == "__main__":
    main()
