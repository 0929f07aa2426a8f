"""The gRPC face of the data plane: takes requests apart, calls pipelines, puts answers together."""
