"""What of a data plane's report is news. Pure."""

from memplane.v1 import policy_pb2


def essence(report: policy_pb2.NodeReport) -> bytes:
    """Equal for two reports that differ in counts, ages and measured times only: those differ in every report."""
    kept = policy_pb2.NodeReport()
    kept.CopyFrom(report)
    kept.call_count = kept.error_count = kept.memory_count = 0
    kept.ClearField("control_plane_time")
    for backend in kept.backends:
        backend.lag = 0
        backend.ClearField("latency")
        backend.ClearField("oldest_wait")
        for breaker in backend.breakers:
            breaker.ClearField("since")
    return kept.SerializeToString(deterministic=True)
