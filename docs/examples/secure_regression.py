import warnings

import hedgerow as hr

warnings.simplefilter("ignore", hr.errors.HedgerowWarning)  # that stores leave between rounds

table = hr.data.load("breast_cancer")
stores = hr.simulate(table, partition=hr.data.stores(), seed=0, engine=hr.InProcess(dropout_rate=0.1, returns=False))
hidden = hr.engines.watch(stores.protect(aggregation=hr.SecAgg(records=1, dropouts=0.2)))

fit = hr.stats.logistic_regression(hidden, "malignant ~ mean_radius + mean_texture")
print(fit.odds_ratios().map(lambda value: f"{value:.3g}"))

row = next(seen for seen in hr.engines.view(hidden, "server") if seen.kind == "masked row")
print("the server saw of one store:", row.values.dtype, f"{len(row.values)} numbers modulo 2^64")
