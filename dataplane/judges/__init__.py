"""What the data plane decides about the rows of an evaluation, one module a task; see `dataplane.judge`."""
