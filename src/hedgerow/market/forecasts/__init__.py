"""What noise of gradients becomes in the result, before the first question is asked."""
