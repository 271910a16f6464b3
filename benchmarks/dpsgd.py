"""One step of DP-SGD beside the same step without privacy and beside Opacus: batches of 600, perceptron 784-200-200-10.

    python benchmarks/dpsgd.py --peers FOLDER --repetitions 5

FOLDER/opacus is a virtual environment with `torch==2.13.0 opacus==1.6.0`. Each repetition runs every contender once, each in
its own process with one thread, and ratios are taken within a repetition. Seconds are of the processor, which a busy machine
lengthens less than those of the clock. Every contender draws its noise as floating-point normals, as Opacus does by default;
what the integer grid costs instead, as in `hedgerow.learn.records.dpsgd`, is a row of its own. Before the clock starts each
contender takes a step without noise, and these are compared.
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

RECORDS, BATCH, RATE, CLIP, NOISE = 6_000, 600, 0.1, 1.0, 1.0
OURS, GRID, PLAIN, GHOST, HOOKS = "hedgerow", "hedgerow, grid noise", "without privacy", "Opacus ghost", "Opacus hooks"
FOREIGN = (GHOST, HOOKS)
Step = Callable[[torch.Tensor, torch.Tensor, float, float], None]


def network() -> nn.Sequential:
    """The perceptron with fixed initial weights."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


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


def ours(net: nn.Module, *, grid: bool) -> Step:
    from hedgerow.learn.models import Model
    from hedgerow.learn.records import Clipping, RecordPlan, clipped_sum

    model, clipping, w = Model(net, "category"), Clipping.of(CLIP), torch.ones(BATCH)
    plan = RecordPlan(clipping, NOISE, BATCH / RECORDS, 1)
    flat = torch.from_numpy(model.initial)

    def step(x: torch.Tensor, y: torch.Tensor, noise: float, rate: float) -> None:
        total, _ = clipped_sum(model, flat, x, y, w, clipping)
        if noise and grid:
            total = torch.from_numpy(plan.noisy(total.numpy(), os.urandom).astype(np.float32))
        elif noise:
            total = torch.randn(len(total)).mul_(noise).add_(total)
        flat.sub_(total, alpha=rate / BATCH)
        if not noise:
            nn.utils.vector_to_parameters(flat, net.parameters())

    return step


def opacus(net: nn.Module, mode: str) -> Step:
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    given: dict[str, Any] = {
        "module": net,
        "optimizer": torch.optim.SGD(net.parameters(), lr=RATE),
        "data_loader": DataLoader(TensorDataset(*records()), batch_size=BATCH),
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


CONTENDERS: dict[str, Callable[[nn.Module], Step]] = {
    PLAIN: without_privacy,
    OURS: lambda net: ours(net, grid=False),
    GRID: lambda net: ours(net, grid=True),
    GHOST: lambda net: opacus(net, "ghost"),
    HOOKS: lambda net: opacus(net, "hooks"),
}


def one(name: str, steps: int) -> None:
    """Run one contender in this process; print seconds of a step, and a fingerprint of a step without noise."""
    torch.set_num_threads(1)
    net, (x, y) = network(), records()
    began = torch.cat([p.detach().flatten() for p in net.parameters()])
    step = CONTENDERS[name](net)
    step(x[:BATCH], y[:BATCH], 0.0, 100.0)  # far, so that the rounding of weights does not hide a difference
    moved = torch.cat([p.detach().flatten() for p in net.parameters()]) - began
    step = CONTENDERS[name](network())
    seconds = []
    for i in range(steps + 2):
        rows = slice(i * BATCH % RECORDS, i * BATCH % RECORDS + BATCH)
        start = time.process_time()
        step(x[rows], y[rows], NOISE, RATE)
        seconds.append(time.process_time() - start)
    probe = torch.randn(len(moved), 64, generator=torch.Generator().manual_seed(5))
    print(
        json.dumps({"seconds": statistics.median(seconds[2:]), "moved": (moved @ probe).tolist(), "size": float(moved.norm())})
    )


def run(name: str, python: str, steps: int) -> dict[str, Any]:
    command = [python, __file__, "--one", name, "--steps", str(steps)]
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
    parser.add_argument("--one", choices=CONTENDERS)
    options = parser.parse_args()
    if options.one:
        return one(options.one, options.steps)
    foreign = options.peers / "opacus" / "bin" / "python" if options.peers else None
    if foreign is None:
        print("Without --peers FOLDER, Opacus is left out: python -m venv FOLDER/opacus, then pip install torch opacus there.")
    names = [name for name in CONTENDERS if foreign or name not in FOREIGN]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.repetitions):
        for name in names:
            steps = max(2, options.steps // 10) if name == HOOKS else options.steps
            found[name].append(run(name, str(foreign) if name in FOREIGN else sys.executable, steps))
    reference = np.array(found[OURS][0]["moved"])
    print(f"one step on {BATCH} records, one thread, medians of {options.repetitions} repetitions of {options.steps} steps")
    for name in names:
        times = [row["seconds"] for row in found[name]]
        ratios = sorted(a / b["seconds"] for a, b in zip(times, found[OURS], strict=True))
        off = np.linalg.norm(np.array(found[name][0]["moved"]) - reference) / np.linalg.norm(reference)
        same = "" if name == PLAIN else f"   step without noise differs by {off:.1e}"
        told = f"{statistics.median(ratios):5.2f} of hedgerow's, {ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"  {name:22s} {1e3 * statistics.median(times):7.2f} ms   {told}{same}")
    floor = sorted(a["seconds"] / b["seconds"] for a, b in zip(found[OURS], found[PLAIN], strict=True))
    print(f"  hedgerow over the step without privacy: {statistics.median(floor):.2f}, {floor[0]:.2f} to {floor[-1]:.2f}")
    return None


if __name__ == "__main__":
    main()
