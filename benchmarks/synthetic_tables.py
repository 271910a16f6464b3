"""Synthetic tables of Adult: ours, and MST and AIM by mbi 2.0 (private-pgm), in one table of one run.

    python benchmarks/synthetic_tables.py [--peer-python PYTHON] [--peers mst aim] [--columns age sex ...] [--seeds 2]

Every method sees the same codes of the 32 561 training records: numbers in sixteen public bins, so that nothing but the method
differs. A table has as many made-up records as there are real ones. PYTHON is an interpreter of mbi's own environment
(`synthetic_peers.py`); without it the peer is left out. The 16 281 published test records are looked at once for each table.

    TSTR    accuracy on the test records of a model that is trained on made-up ones: logistic regression, boosted trees
    TV      TVComplement, 1 - half the difference of shares, mean over columns;  pairs  the same of pairs of columns
    CPU s   processor time from the records to the table, of ours all parties' and the server's; of mbi its compiling as well
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

import numpy as np

import hedgerow as hr
from hedgerow.synth import Codes

DELTA, BINS, MONEY = 1e-5, 16, ("capital_gain", "capital_loss")
COLUMNS = ("TSTR logistic", "TSTR boosting", "TV", "pairs", "CPU s")
PEERS = {"mst": "MST, its tables by mbi 2.0", "aim": "AIM, pairs with the target, by mbi 2.0"}
REAL = "the real records"


@dataclass(frozen=True)
class Made:
    """Codes of made-up records."""

    method: str
    epsilon: float
    seconds: float
    codes: np.ndarray


class Adult:
    """Training and test records as codes."""

    def __init__(self, columns: list[str] | None) -> None:
        self.table = hr.data.load("adult")
        assert self.table.test is not None
        self.settings: dict[str, Any] = {"bins": BINS, "log": tuple(n for n in MONEY if columns is None or n in columns)}
        self.settings |= {"columns": columns} if columns else {}
        self.codes = Codes.of(self.table.schema, **self.settings)
        self.train, self.test = (self.codes.number(part.columns).astype(int) for part in (self.table, self.table.test))
        self.target = self.codes.place(self.codes.target)


def ours(data: Adult, parties: int, shares: bool) -> Iterator[tuple[str, Callable[[float, int], Any]]]:
    """Each of our methods, and what makes a table by it."""
    everywhere = {"noise_at": "shares", "least": parties} if shares else {}

    def by(call: Callable[..., Any], **more: Any) -> Callable[[float, int], Any]:
        def make(epsilon: float, seed: int) -> Any:
            federation = hr.simulate(data.table, hr.data.iid(parties), seed=seed)
            if shares:
                federation = federation.protect(aggregation=hr.SecAgg())
            settings = data.settings | everywhere | more
            return call(federation, epsilon=epsilon, delta=DELTA, **settings).sample(len(data.table), seed=seed)

        return make

    where = ", hidden rows, noise in shares" if shares else ""
    yield f"hr.synth.tan{where}", by(hr.synth.tan)
    yield f"hr.synth.rap{where}", by(hr.synth.rap)
    if not shares:
        yield "hr.synth.mst", by(hr.synth.mst)
        yield "hr.synth.copula", by(hr.synth.copula, by=data.codes.target)
        yield "hr.synth.marginals", by(hr.synth.marginals)


def of_ours(data: Adult, options: argparse.Namespace) -> Iterator[Made]:
    """Make our tables."""
    for shares in (False, True) if options.shares else (False,):
        for method, make in ours(data, options.parties, shares):
            for epsilon in options.epsilons:
                for seed in range(options.seeds):
                    began = time.process_time()
                    table = make(epsilon, seed)
                    seconds = time.process_time() - began
                    yield Made(method, epsilon, seconds, data.codes.number(table.columns).astype(int))


def of_peers(data: Adult, options: argparse.Namespace) -> Iterator[Made]:
    """Make mbi's tables in its own environment."""
    asked = {"methods": options.peers, "epsilons": options.epsilons, "seeds": options.seeds, "delta": DELTA}
    asked |= {"sizes": data.codes.sizes, "target": data.target, "rows": len(data.train)}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        np.save(folder / "codes.npy", data.train)
        (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        script = Path(__file__).with_name("synthetic_peers.py")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        words = [options.peer_python, str(script), place]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=clean)
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout)
        for line in done.stdout.splitlines():
            found = json.loads(line)
            yield Made(PEERS[found["model"]], found["epsilon"], found["seconds"], np.load(folder / found["codes"]))


def judged(data: Adult, codes: np.ndarray) -> list[float]:
    """The columns of the table but the last: the one place where test records are read."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    sizes, target = data.codes.sizes, data.target
    others = [j for j in range(len(sizes)) if j != target]

    def indicators(given: np.ndarray) -> np.ndarray:
        return np.concatenate([np.eye(sizes[j])[given[:, j]] for j in others], axis=1)

    logistic = LogisticRegression(max_iter=200).fit(indicators(codes), codes[:, target])
    boosting = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(codes[:, others], codes[:, target])
    found = [logistic.score(indicators(data.test), data.test[:, target])]
    found.append(boosting.score(data.test[:, others], data.test[:, target]))

    def alike(clique: tuple[int, ...]) -> float:
        shape = [sizes[j] for j in clique]
        places = (np.ravel_multi_index([one[:, j] for j in clique], shape) for one in (data.train, codes))
        p, q = (np.bincount(place, minlength=int(np.prod(shape))) / len(place) for place in places)
        return 1 - float(np.abs(p - q).sum()) / 2

    for size in (1, 2):
        found.append(float(np.mean([alike(clique) for clique in combinations(range(len(sizes)), size)])))
    return [100 * found[0], 100 * found[1], *found[2:]]


def main() -> None:
    """Print one table, and what differs between its lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", metavar="PYTHON", help="an interpreter that has mbi")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=["mst"])
    parser.add_argument("--columns", nargs="+", help="of Adult; all by default. AIM needs few")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--parties", type=int, default=10, help="among whom records are dealt")
    parser.add_argument("--shares", action="store_true", help="also with hidden rows and noise in shares")
    options = parser.parse_args()
    data = Adult(options.columns)
    cells: dict[str, dict[float, list[list[float]]]] = {}
    made = [Made(REAL, 0.0, 0.0, data.train), *of_ours(data, options)]
    made += of_peers(data, options) if options.peer_python else []
    for one in made:
        line = [*judged(data, one.codes), one.seconds]
        cells.setdefault(one.method, {}).setdefault(one.epsilon, []).append(line)
    print(f"Adult: {len(data.train)} records of {len(data.codes.sizes)} columns, {len(data.test)} to test on; ", end="")
    print(f"{options.seeds} seeds, delta {DELTA:g}, {options.parties} parties")
    print(f"{'':44s}{'epsilon':>8s}" + "".join(f"{name:>15s}" for name in COLUMNS))
    for method, found in cells.items():
        for epsilon, lines in found.items():
            logistic, boosting, tv, pairs, seconds = np.mean(lines, axis=0)
            said = f"{epsilon:g}" if epsilon else "none"
            print(f"{method:44s}{said:>8s}{logistic:15.2f}{boosting:15.2f}{tv:15.4f}{pairs:15.4f}{seconds:15.1f}", flush=True)
    mine = cells["hr.synth.tan"]
    for method in PEERS.values():
        for epsilon in cells.get(method, {}):
            ratio = np.mean(cells[method][epsilon], axis=0)[-1] / np.mean(mine[epsilon], axis=0)[-1]
            print(f"{method}, epsilon {epsilon:g}: {ratio:.0f} times the processor time of hr.synth.tan")
    print(SAME)


SAME = """Same for all: records, codes, epsilon and delta per record, add-remove. Different:
  who sees   ours asks each party for noisy totals; mbi's choices of tables need the exact totals of every table in one place
  cost       ours is accounted as Gaussian releases exactly; the peers' by zero-concentrated privacy, as their papers do
  target     tan, rap, AIM and copula treat the target as one; MST and marginals do not
  tuning     shares, sixteen bins and log scale of ours were chosen on these records before, and that choice is not counted"""


if __name__ == "__main__":
    main()
