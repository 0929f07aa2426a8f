"""The bundled offline embedder: model, micro-batches, calibration."""
