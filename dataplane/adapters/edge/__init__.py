"""Vector and text index on Qdrant Edge, in process: one shard in a folder for each, derived and rebuildable."""
