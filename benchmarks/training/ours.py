"""Hedgerow on a training workload: FedAvg through its ordinary handle, with clip, noise, budget and ledger.

    python ours.py W1 --rounds 5 --path native

W1 and W2 clip to norm 1, add Gaussian noise of multiplier 1 on the integer grid, debit each round to a ledger on disk under a
budget, and log a line. Batches are cut from a shuffle of the party's records instead of their stored order, which Hedgerow
always does and which costs it time. `--path` chooses how local steps are computed; left out, Hedgerow chooses.
"""

from __future__ import annotations

import logging
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from workloads import (
    PIXELS,
    Clock,
    PeakMemory,
    Workload,
    arguments,
    coloured_images,
    images,
    line,
    parsed,
    party_rows,
    training_loss,
)


def main() -> None:
    """Train and print the line."""
    parser = arguments(__doc__)
    parser.add_argument("--path", choices=("auto", "native", "traced", "eager"), default="auto")
    options, workload = parsed(parser)
    columns = records(workload, options.data)
    memory = PeakMemory()
    began = time.perf_counter()

    from networks import network

    import hedgerow as hr
    from hedgerow.core import Federation, Parties
    from hedgerow.core.randomness import Streams
    from hedgerow.store import LedgerFile

    shape = (3, 32, 32) if workload.convolutional else (PIXELS,)
    span = {} if workload.convolutional else {"low": 0, "high": 255}
    schema = hr.data.Schema(
        (
            hr.data.Column("image", "number", shape=shape, **span),
            hr.data.Column("label", "category", levels=tuple("0123456789"), role="target"),
        )
    )
    held = Parties([f"party {k + 1}" for k in range(workload.parties)], columns, [workload.records] * workload.parties)
    federation = Federation(hr.InProcess().hosting(held), schema, streams=Streams(0))
    settings = {"batch_size": workload.batch, "epochs": workload.passes, "learning_rate": workload.learning_rate}
    if workload.clip is not None:
        noise = hr.Gaussian(workload.noise_multiplier)
        federation = federation.protect(clip=hr.l2(workload.clip), mechanism=noise).within(hr.Budget(1e4, 1e-6))
        settings["size"] = workload.cohort
    log = logging.getLogger("benchmark")
    net, clock = network(workload), Clock()
    with tempfile.TemporaryDirectory() as folder:
        federation.recorded(LedgerFile(Path(folder) / "ledger.jsonl"))
        clock.mark()
        for state in hr.learn.fedavg(federation, net, rounds=options.rounds + 1, path=options.path, **settings):
            log.info("round %d", state.round)
            clock.mark()
    peak = memory.end()  # before the loss draws the images again
    loss = training_loss(workload, list(state.weights.values()), options.data)
    print(line(workload, "hedgerow", version("hedgerow"), f"path {options.path}", clock, began, peak, loss))


def records(workload: Workload, source: str) -> dict[str, np.ndarray]:
    """All parties' columns, one party after the other; images stay bytes."""
    if workload.convolutional:
        x, y = coloured_images()
        return {"image": x.reshape(-1, *x.shape[2:]), "label": y.ravel().astype(np.int16)}
    x, y = images(source)
    rows = party_rows(workload).ravel()
    return {"image": x[rows], "label": y[rows].astype(np.int16)}


if __name__ == "__main__":
    main()
