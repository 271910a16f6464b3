import hedgerow as hr
from hedgerow.core.release import Release
from hedgerow.core.question import Query
from hedgerow.errors import BudgetExhausted
from hedgerow.privacy.guard import Guard
from hedgerow.stats.counts import level_counts

guard = Guard(hr.Budget(epsilon=2.0, delta=1e-6, unit="record"))
noisy = Shield(bounds=hr.l2(1.0, unit="record"), mechanism=hr.Gaussian(5.0, at="party"))
try:
    for number in range(1, 100):
        guard.debit(Query(number, "sum", level_counts, shield=noisy))
except BudgetExhausted as refusal:
    print(refusal.reason)
print(guard)
