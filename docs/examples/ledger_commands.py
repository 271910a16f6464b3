import hedgerow as hr
from hedgerow.cli.main import app
from hedgerow.store import LedgerFile

hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
hospitals.ledger.attach(LedgerFile("ledger.jsonl"))
protected = hospitals.protect(mechanism=hr.Gaussian(6.0))
for _ in range(3):
    hr.stats.counts(protected, ["malignant"])

for command in ("show ledger.jsonl", "verify ledger.jsonl", "budget ledger.jsonl --epsilon 2 --delta 1e-4"):
    print(f"$ hedgerow ledger {command}")
    app(["ledger", *command.split()], standalone_mode=False)
