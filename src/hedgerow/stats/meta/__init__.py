"""Sites that differ: an intercept for each of them, and meta-analysis of what each finds by itself."""
