"""What `synthetic_tables.py` runs in the environment of mbi 2.0 (private-pgm, Apache-2.0): MST and AIM around its inference.

    PYTHON benchmarks/synthetic_peers.py FOLDER

PYTHON has mbi. FOLDER holds `codes.npy` (n, f), the coded records, and `asked.json`; codes of made-up records are written
there, and a line of JSON is printed for each table. The wheel of mbi has inference alone; which tables are measured is written
here from the papers:

    MST    a third of rho for tables of one column, a third for a tree of pairs by exponential choices, a third for its tables
           (McKenna, Miklau & Sheldon 2021, section 4; rare levels are not merged)
    AIM    rho / (16 f) for each round: a choice of the table that the model gets most wrong, beyond what its noise would, and
           its noisy counts; where a round moved the model by less than noise, the next has twice the precision
           (McKenna, Mullins, Sheldon & Miklau 2022, Algorithm 2; the workload is all pairs, and all pairs with the target)

Both see exact totals of every table when they choose: they need a server that holds or sees all of them.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

Clique = tuple[int, ...]
LARGEST = 2.0
"""Megabytes of AIM's model; its paper has 80."""
NOISE_L1 = math.sqrt(2 / math.pi)
"""Expected absolute value of a standard normal."""


class Asked:
    """Coded records, asked for noisy tables within a budget of zero-concentrated privacy."""

    def __init__(self, codes: np.ndarray, sizes: list[int], epsilon: float, delta: float, seed: int) -> None:
        self.codes, self.sizes, self.rng = codes, sizes, np.random.default_rng(seed)
        self.rho, self.spent = rho_of(epsilon, delta), 0.0
        self.measured: list[tuple[np.ndarray, Clique, float]] = []

    def table(self, clique: Clique) -> np.ndarray:
        """Exact counts."""
        shape = [self.sizes[j] for j in clique]
        places = np.ravel_multi_index([self.codes[:, j] for j in clique], shape)
        return np.bincount(places, minlength=math.prod(shape)).astype(float)

    def measure(self, clique: Clique, sigma: float) -> None:
        """Noisy counts."""
        self.spent += 1 / (2 * sigma**2)
        exact = self.table(clique)
        self.measured.append((exact + sigma * self.rng.normal(size=len(exact)), clique, sigma))

    def choose(self, scores: dict[Clique, float], epsilon: float, moves: float = 1.0) -> Clique:
        """The exponential mechanism, of scores that one record moves by `moves`."""
        self.spent += epsilon**2 / 8
        noisy = [epsilon * score / (2 * moves) + self.rng.gumbel() for score in scores.values()]
        return list(scores)[int(np.argmax(noisy))]

    def model(self, iterations: int, before: Any = None) -> Any:
        """The graphical model of what was measured, by mbi."""
        from mbi import Domain, LinearMeasurement, estimation

        domain = Domain(list(range(len(self.sizes))), self.sizes)
        found = [LinearMeasurement(counts, clique, sigma) for counts, clique, sigma in self.measured]
        return estimation.MirrorDescent().estimate(domain, found, iters=iterations, warm_start=before)


def mst(asked: Asked, target: int) -> Any:
    """Tables along a tree of maximal misfit."""
    columns = range(len(asked.sizes))
    for j in columns:
        asked.measure((j,), math.sqrt(len(columns) / (2 * asked.rho / 3)))
    model = asked.model(1000)
    scores = {pair: misfit(asked, model, pair) for pair in combinations(columns, 2)}
    each, group, chosen = math.sqrt(8 * (asked.rho / 3) / (len(columns) - 1)), list(columns), []
    for _ in columns[1:]:
        a, b = asked.choose({pair: score for pair, score in scores.items() if group[pair[0]] != group[pair[1]]}, each)
        chosen.append((a, b))
        group = [group[a] if one == group[b] else one for one in group]
    for pair in chosen:
        asked.measure(pair, math.sqrt((len(columns) - 1) / (2 * asked.rho / 3)))
    return asked.model(2500)


def aim(asked: Asked, target: int) -> Any:
    """The table that the model gets most wrong, again and again."""
    from mbi import Domain
    from mbi.junction_tree import hypothetical_model_size

    columns, sizes = range(len(asked.sizes)), asked.sizes
    domain = Domain(list(columns), sizes)
    pairs = list(combinations(columns, 2))
    workload = [*pairs, *((*pair, target) for pair in pairs if target not in pair)]
    weights = {clique: sum(len(set(clique) & set(other)) for other in workload) for clique in workload}
    most = max(weights.values())
    rho_round = asked.rho / (16 * len(columns))
    sigma, epsilon = math.sqrt(1 / (2 * 0.9 * rho_round)), math.sqrt(8 * 0.1 * rho_round)
    for j in columns:
        asked.measure((j,), sigma)
    model = asked.model(1000)
    while asked.spent < asked.rho * (1 - 1e-9):
        left = asked.rho - asked.spent
        if left < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            sigma, epsilon = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left)
        known, room = [clique for _, clique, _ in asked.measured], LARGEST * (asked.spent / asked.rho)
        scores = {
            clique: weights[clique] * (misfit(asked, model, clique) - NOISE_L1 * sigma * math.prod(sizes[j] for j in clique))
            for clique in workload
            if any(set(clique) <= set(one) for one in known) or hypothetical_model_size(domain, [*known, clique]) <= room
        }
        if not scores:
            scores = {one: misfit(asked, model, one) for one in known}
        chosen, before = asked.choose(scores, epsilon, moves=most), model
        asked.measure(chosen, sigma)
        model = asked.model(1000, before)
        moved = float(np.abs(of(model, chosen) - of(before, chosen)).sum())
        if moved <= NOISE_L1 * sigma * math.prod(sizes[j] for j in chosen):
            sigma, epsilon = sigma / 2, epsilon * 2
    return asked.model(2500, model)


def misfit(asked: Asked, model: Any, clique: Clique) -> float:
    """The l1 distance of a table from the model's, which one record moves by 1."""
    return float(np.abs(asked.table(clique) - of(model, clique)).sum())


def of(model: Any, clique: Clique) -> np.ndarray:
    """A table of the model."""
    return np.asarray(model.project(clique).datavector())


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-private (Canonne, Kamath & Steinke 2020, Corollary 13)."""
    orders = np.concatenate([1 + np.logspace(-2, 0, 200), np.arange(2.0, 2000.0)])
    low, high = 0.0, 1e3
    for _ in range(200):
        rho = (low + high) / 2
        found = np.min(rho * orders + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1))
        low, high = (rho, high) if found <= epsilon else (low, rho)
    return low


def main() -> None:
    """Make a table with every method at every epsilon with every seed."""
    warnings.filterwarnings("ignore")
    import jax

    jax.config.update("jax_enable_x64", True)  # else inference stalls beyond some 100 000 records
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    codes, methods = np.load(folder / "codes.npy"), {"mst": mst, "aim": aim}
    count = 0
    for name in asked["methods"]:
        for epsilon in asked["epsilons"]:
            for seed in range(asked["seeds"]):
                began = time.process_time()
                of_it = Asked(codes, asked["sizes"], epsilon, asked["delta"], seed)
                model = methods[name](of_it, asked["target"])
                assert of_it.spent <= of_it.rho * (1 + 1e-9)
                np.random.seed(seed)  # mbi draws from it
                made = model.synthetic_data(asked["rows"]).to_dict()
                seconds = time.process_time() - began
                path, count = folder / f"made-{count}.npy", count + 1
                np.save(path, np.stack([np.asarray(made[j]) for j in range(codes.shape[1])], axis=1))
                told = {"model": name, "epsilon": epsilon, "seconds": seconds, "codes": path.name}
                print(json.dumps(told | {"tables": len(of_it.measured)}), flush=True)


if __name__ == "__main__":
    main()
