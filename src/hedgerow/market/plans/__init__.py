"""With whom, at which epsilon, at what price."""
