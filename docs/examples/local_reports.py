import hedgerow as hr
from hedgerow.privacy.local import OptimisedUnary
from hedgerow.stats import counts

people = hr.simulate(hr.data.load("fair"), hr.data.stores(), seed=0)  # every record is a party of its own
private = people.protect(clip=hr.l1(1.0), mechanism=OptimisedUnary(2.0))
found = counts(private, ["occupation"])
print(found.round(3).to_string())
print([str(entry.event) for entry in private.ledger.entries])
