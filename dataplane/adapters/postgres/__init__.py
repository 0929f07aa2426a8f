"""The record store of a company: PostgreSQL 14 or newer, with row-level security, shared by any number of processes."""
