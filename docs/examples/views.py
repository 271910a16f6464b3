import hedgerow as hr

table, bins = hr.data.load("breast_cancer"), [5, 10, 15, 20, 30]
STEPS = 4096  # of the grid, for one record


def seen_by_the_server(mechanism: object) -> list[list[float]]:
    hospitals = hr.engines.watch(hr.simulate(table, partition=hr.data.iid(parties=5), seed=0).protect(mechanism=mechanism))
    hr.stats.histogram(hospitals, "mean_radius", bins)
    return [(seen.values / STEPS).round(2).tolist() for seen in hr.engines.view(hospitals, "server") if seen.kind == "row"]


print(seen_by_the_server(hr.Gaussian(1.0, at="server"))[0])  # counts of the first hospital, exact
print(seen_by_the_server(hr.Gaussian(1.0, at="party"))[0])  # the same, with noise of standard deviation 1
