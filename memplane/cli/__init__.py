"""The `memplane` command: starts the planes as processes and talks to them by gRPC only."""
