"""Models that are defined by a loss: gradient descent, support vector machines, Huber and quantile regression."""
