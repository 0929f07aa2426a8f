"""Ranking profiles: one formula each over the same signals; see `table`."""
