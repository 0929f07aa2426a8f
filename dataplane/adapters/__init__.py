"""Ports made real: stores, indexes, caches, embedders, the policy stream."""
