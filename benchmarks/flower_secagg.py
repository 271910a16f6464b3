"""Flower's SecAgg+ on given rows, in one process: its own modifier at the clients, its own workflow at the server.

    PYTHON flower_secagg.py ROWS.npy --threshold 16 --gone 3

PYTHON is an interpreter that has flwr 1.42.0; `secure_sums.py --flower PYTHON` runs this file beside Hedgerow's SecAgg.
Messages pass by hand: there is no network and no serialisation. Of the clients only Flower's four stage functions are
timed, without the messages around them; of the server its four stages, without the wait for clients. Prints one JSON line:
seconds of processor time of a client that stays and of the server, the least of some rounds, and how far the mean is off.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}

import numpy as np
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.common import Code, FitIns, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key, Stage
from flwr.compat.common.recorddict_compat import fitres_to_recorddict, parameters_to_arrayrecord
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.secure_aggregation.secaggplus_workflow import WorkflowState
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # what a task of a deployment finds set
modifier = import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")  # a function of its package has this name too

RANGE, LEVELS = 8.0, 1 << 22
"""Flower's defaults: values are clipped to [-8, 8] and rounded to one of 2^22 levels."""


def main() -> None:
    """Run one round and print the line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", help="an .npy file of shape (clients, size)")
    parser.add_argument("--threshold", type=int, required=True, help="shares that open a secret")
    parser.add_argument("--gone", type=int, default=0, help="clients that are lost before their masked vector")
    parser.add_argument("--repetitions", type=int, default=2)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    rows = np.load(options.rows)
    rounds = [one_round(rows, options.gone, options.threshold) for _ in range(options.repetitions)]
    least = {key: min(found[key] for found in rounds) for key in ("client", "server")}
    error = max(found["error"] for found in rounds)
    print(json.dumps({"version": version("flwr"), **least, "error": error, "step": 2 * RANGE / LEVELS, "rounds": rounds}))


def one_round(rows: np.ndarray, gone: int, threshold: int) -> dict[str, Any]:
    """Seconds of one round, and how far its mean is off."""
    clients = Clients(rows, gone)
    mean, server = clients.round(threshold)
    stages = {stage: float(np.median([clients.seconds[i][stage] for i in clients.staying])) for stage in STAGES}
    return {
        "client": float(np.median([sum(clients.seconds[i].values()) for i in clients.staying])),
        "client stages": stages,
        "server": sum(server.values()),
        "server stages": server,
        "error": float(np.abs(mean - rows[gone:].mean(axis=0)).max()),
    }


STAGES = {
    Stage.SETUP: "_setup",
    Stage.SHARE_KEYS: "_share_keys",
    Stage.COLLECT_MASKED_VECTORS: "_collect_masked_vectors",
    Stage.UNMASK: "_unmask",
}
FUNCTIONS = {stage: getattr(modifier, name) for stage, name in STAGES.items()}


class Clients:
    """The clients, their clocks, and the grid by which the server reaches them.

    Parameters
    ----------
    rows : array of shape (n, d)
    gone : int
        The first so many are lost after their shares have been sent out.
    """

    def __init__(self, rows: np.ndarray, gone: int) -> None:
        self.rows, self.lost = rows, set(range(1, gone + 1))
        self.ids = range(1, len(rows) + 1)
        self.staying = [i for i in self.ids if i not in self.lost]
        self.states = {i: Context(1, i, {}, RecordDict(), {}) for i in self.ids}
        self.seconds: dict[int, dict[str, float]] = {i: {} for i in self.ids}
        self.waited, self._current, self._mean = 0.0, 0, np.zeros(0)
        for stage, name in STAGES.items():
            setattr(modifier, name, self._timed(stage, FUNCTIONS[stage]))

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            began = time.process_time()
            answer = function(*arguments)
            self.seconds[self._current][stage] = time.process_time() - began
            return answer

        return called

    def round(self, threshold: int) -> tuple[np.ndarray, dict[str, float]]:
        """The mean that Flower's server arrives at, and the server's seconds by stage."""
        workflow = SecAggPlusWorkflow(1.0, threshold, max_weight=1.0, clipping_range=RANGE, quantization_range=LEVELS)
        records = RecordDict()
        records.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({"current_round": 1})
        records.array_records[MAIN_PARAMS_RECORD] = parameters_to_arrayrecord(ndarrays_to_parameters([np.zeros(1)]), True)
        context = SimpleNamespace(
            state=records, strategy=self, client_manager=SimpleNamespace(num_available=lambda: len(self.ids)),
            history=SimpleNamespace(add_metrics_distributed_fit=lambda **_: None),
        )  # fmt: skip
        state, server = WorkflowState(), {}
        for stage in (
            workflow.setup_stage,
            workflow.share_keys_stage,
            workflow.collect_masked_vectors_stage,
            workflow.unmask_stage,
        ):
            self.waited, began = 0.0, time.process_time()
            if not stage(self, context, state):
                raise SystemExit(f"Flower gave up in {stage.__name__}")
            server[stage.__name__] = time.process_time() - began - self.waited
        return self._mean, server

    # ---- the grid ------------------------------------------------------------------------------------------------------
    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Answer for every client; each gets a copy, as it would from a network."""
        began = time.process_time()
        replies = []
        for message in messages:
            self._current = message.metadata.dst_node_id
            own = Message(copy.deepcopy(message.content), dst_node_id=self._current, message_type="train", group_id="1")
            stage = own.content.config_records[RECORD_KEY_CONFIGS][Key.STAGE]
            if self._current in self.lost and stage in (Stage.COLLECT_MASKED_VECTORS, Stage.UNMASK):
                replies.append(Message(Error(0, "lost"), reply_to=own))
            else:
                replies.append(modifier.secaggplus_mod(own, self.states[self._current], self._fit))
        self.waited += time.process_time() - began
        return replies

    def _fit(self, message: Message, context: Context) -> Message:
        row = self.rows[self._current - 1]
        found = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([row]), 1, {})
        return Message(fitres_to_recorddict(found, False), reply_to=message)

    # ---- the strategy --------------------------------------------------------------------------------------------------
    def configure_fit(self, *_: Any) -> list[tuple[Any, FitIns]]:
        """Ask everybody."""
        return [(SimpleNamespace(node_id=i), FitIns(Parameters([], ""), {})) for i in self.ids]

    def aggregate_fit(self, _: int, results: list[tuple[Any, FitRes]], failures: list[Any]) -> tuple[None, dict[str, Any]]:
        """Keep the mean."""
        (self._mean,) = parameters_to_ndarrays(results[0][1].parameters)
        return None, {}


if __name__ == "__main__":
    main()
