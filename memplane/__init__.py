"""What both planes and every client agree on: the contract, policy, errors, and the client."""

__version__ = "0.1.0"
