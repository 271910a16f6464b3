import hedgerow as hr
from hedgerow.core.engine import Outbox
from hedgerow.core.question import Question
from hedgerow.core.release import Release
from hedgerow.errors import BudgetExhausted
from hedgerow.privacy.guard import Guard
from hedgerow.stats.counts import level_counts

guard = Guard(hr.Budget(epsilon=2.0, delta=1e-6, unit="record"))
noisy = Release(bounds=hr.l2(1.0, unit="record"), mechanism=hr.Gaussian(5.0, at="party"))
try:
    for number in range(1, 100):
        guard.debit(Outbox(("clinic",), Question("sum", level_counts, number=number), noisy))
except BudgetExhausted as refusal:
    print(refusal.reason)
print(guard)
