"""The vector index on a Qdrant server over gRPC: a collection for each embedding model, behind an alias."""
