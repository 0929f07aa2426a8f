"""Tests of dataplane.adapters.postgres that need no server."""
