"""Matrices of attacks: acts by rules, on partitions, with several seeds; a line on disk for each run, and one page."""
