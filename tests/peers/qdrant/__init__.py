"""A peer of Qdrant: its gRPC interface, as qdrant-client ships it, over shards of Qdrant Edge, Qdrant's own engine.

It does what the adapter asks for and answers UNIMPLEMENTED to everything else. One node, one shard, no optimiser: there
is no HNSW graph, searches are exact, and nothing is vacuumed.
"""
