"""Mixed models: intercepts of sites or of other clusters, drawn from a normal distribution."""
