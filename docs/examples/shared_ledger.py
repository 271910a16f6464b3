import hedgerow as hr
from hedgerow.errors import BudgetExhausted
from hedgerow.privacy.statement import statement
from hedgerow.store import LedgerBase

budget = hr.Budget(epsilon=1.0, delta=1e-4, unit="record")


def count(seed: int) -> None:
    """One run: as many noisy counts as the budget of all runs admits, three at most."""
    hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=seed)
    hospitals.ledger.attach(LedgerBase("hospitals.sqlite"))
    protected = hospitals.protect(mechanism=hr.Gaussian(6.0)).within(budget)
    try:
        for _ in range(3):
            print(hr.stats.counts(protected, ["malignant"])["count"].round().tolist())
    except BudgetExhausted as refusal:
        print(refusal.reason)
    print(statement(protected.ledger, {"record": 569, "party": 5}).sentence)


count(seed=0)
count(seed=1)
