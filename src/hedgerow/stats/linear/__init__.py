"""What every regression shares: losses of a linear predictor, their sums and bounds, and Newton's method on them."""
