"""What an epsilon means, leaks and is worth."""
