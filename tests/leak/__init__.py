"""Nobody sees what is not his: two tenants on one data plane, every RPC at random, every answer held against a model.

`python -m tests.leak --seconds 300 --seed 1` runs the long form; README.md tells what is checked.
"""
