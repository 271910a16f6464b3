from functools import partial
from pathlib import Path

import hedgerow as hr
from hedgerow.learn import ModelState
from hedgerow.store import LedgerFile, load_checkpoint

train = partial(hr.learn.fedavg, module=hr.learn.linear(64, 10), rate=0.5)


def parties(ledger: str) -> hr.Federation:
    federation = hr.simulate(hr.data.load("digits"), partition=hr.data.shards(parties=20), seed=0)
    federation.ledger.attach(LedgerFile(Path(ledger)))
    return federation


whole = hr.drive(partial(train, rounds=6), parties("whole.jsonl"))

file = Path("checkpoint.safetensors")
hr.drive(partial(train, rounds=3), parties("ledger.jsonl"), checkpoint=file, study="digits")

halfway = load_checkpoint(file, ModelState, study="digits")
resumed = hr.drive(partial(train, rounds=6), parties("ledger.jsonl"), start=halfway)

assert Path("ledger.jsonl").read_text() == Path("whole.jsonl").read_text()
assert all((resumed.state.weights[name] == whole.state.weights[name]).all() for name in whole.state.weights)
