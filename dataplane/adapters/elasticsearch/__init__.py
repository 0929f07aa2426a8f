"""The text index on Elasticsearch 8 or 9, with nothing that a bare distribution lacks."""
