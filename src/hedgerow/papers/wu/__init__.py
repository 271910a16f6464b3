"""Wu 2019: what noisy gradients cost, with whom to learn, and at which price."""
