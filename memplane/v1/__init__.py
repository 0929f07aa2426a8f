"""Stubs generated from `proto/memplane/v1`."""
