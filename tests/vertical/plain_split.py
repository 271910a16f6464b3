"""Split learning of two modules in plain torch, without a federation: the reference that leaks are measured on in tests.

    feature holder   a: 29-32-16 with ReLU        label holder   b: 16-1
Adam 1e-3, batches of 256, as the study `split-fraud`; what leaves is observed at the party that sends it.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hedgerow.vertical.leaks import LabelDP, NoPeek, Observer, area

FOLDER = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data") / "tabular"
FRAUD = FOLDER / "creditcard_subset_34267.csv.gz"


@dataclass(frozen=True)
class People:
    """Features in units of their deviation, and labels, of those who train and those who are held out."""

    x: np.ndarray
    y: np.ndarray
    held_x: np.ndarray
    held_y: np.ndarray


def fraud(n: int | None = None) -> People:
    """The payments of the note (`random_full` and `fraud`), or n of them, in its order; 7 in 10 train."""
    with gzip.open(FRAUD, "rt") as file:
        file.readline()
        rows = [line.rstrip().split(",") for line in file]
    rows = [row for row in rows if row[31].strip('"') in ("random_full", "fraud")]
    x = np.array([row[1:30] for row in rows], np.float64)
    x[:, -1] = np.log1p(x[:, -1])
    y = np.array([float(row[30].strip('"')) for row in rows])
    x = (x - x.mean(0)) / x.std(0)
    order = np.random.default_rng(5).permutation(len(y))[:n]
    x, y = x[order], y[order]
    k = int(0.7 * len(y))
    return People(x[:k], y[:k], x[k:], y[k:])


def made(n: int = 2000, held: int = 1000, positive: float = 0.06, seed: int = 0) -> People:
    """People with 29 features of which some tell a rare label; made up."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n + held) < positive).astype(float)
    x = rng.normal(size=(n + held, 29))
    x[:, :6] += 1.3 * y[:, None]
    x = (x - x.mean(0)) / x.std(0)
    return People(x[:n], y[:n], x[n:], y[n:])


@dataclass(frozen=True)
class Trained:
    """What a training leaves: how good it is, what each party observed of what it sent, and the labels that were used."""

    task: float
    label_holder: dict[str, Any]
    feature_holder: dict[str, Any]
    said: np.ndarray
    a: nn.Module
    b: nn.Module
    observer: Observer


def train(
    people: People,
    defence: Any = None,
    *,
    epochs: int = 4,
    batch: int = 256,
    cut: int = 16,
    seed: int = 0,
    entropy: Any = None,
    observer: Observer | None = None,
    own: NoPeek | None = None,
    again: bool = False,
) -> Trained:
    """Algorithm 5 of the thesis with one feature holder; `again` is the broken twin that draws labels anew each epoch."""
    torch.manual_seed(seed)
    watch = observer or Observer(tuple(range(1, epochs + 1)))
    x, n = torch.tensor(people.x, dtype=torch.float32), len(people.y)
    a = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, cut), nn.ReLU())
    b = nn.Linear(cut, 1)
    ours, theirs = torch.optim.Adam(a.parameters(), 1e-3), torch.optim.Adam(b.parameters(), 1e-3)
    up: dict[str, Any] = {}
    down: dict[str, Any] = {}
    said = people.y.astype(np.int64)
    for epoch in range(1, epochs + 1):
        if isinstance(defence, LabelDP):
            said = defence.draw(people.y, entropy) if again else defence.once(down, people.y, entropy)
        used = torch.from_numpy(said.copy())
        for number, rows in enumerate(torch.randperm(n).split(batch)):
            z = a(x[rows])
            watch.note(up, epoch, number, rows, z.detach(), n=n, size=batch)
            cut_z = z.detach().clone().requires_grad_()
            score = b(cut_z)[:, 0]
            if isinstance(defence, LabelDP):
                loss = defence.loss(score, used[rows])
            else:
                loss = functional.binary_cross_entropy_with_logits(score, used[rows].float())
            theirs.zero_grad()
            loss.backward()
            theirs.step()
            g = cut_z.grad.numpy()
            if hasattr(defence, "protect"):
                g = defence.protect(g, entropy)
            watch.note(down, epoch, number, rows, g, score.detach(), n=n, size=batch)
            ours.zero_grad()
            own_loss = (z * torch.from_numpy(g)).sum()
            if own is not None:
                own_loss = own_loss + own.term(x[rows], z)
            own_loss.backward()
            ours.step()
    with torch.no_grad():
        task = area(b(a(torch.tensor(people.held_x, dtype=torch.float32)))[:, 0].numpy(), people.held_y).value
    return Trained(task, down, up, said, a, b, watch)
