"""Redis: cache, tombstones, access counters and write queue, on one server, under Sentinels or as a cluster."""
