"""Ports kept in the memory of the process, for tests and as the reference of the contract suites."""
