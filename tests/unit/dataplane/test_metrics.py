"""What a scrape of a data plane holds."""

import urllib.request

import grpc

from dataplane.metrics import DataPlaneMetrics
from memplane.rpc.metrics import metrics_served
from memplane.v1 import policy_pb2


def report() -> policy_pb2.NodeReport:
    backend = policy_pb2.BackendStatus(
        backend="text_index", adapter="elasticsearch", healthy=True, lag=7, dead_letters=2
    )
    backend.problems.add(code="YELLOW", message="copies are missing")
    backend.breakers.add(operations="reads", state=policy_pb2.BREAKER_STATE_OPEN, opened_count=3)
    return policy_pb2.NodeReport(backends=[backend], memory_count=12, stale_action="deny")


def test_a_scrape_has_calls_stages_backends_and_what_went_wrong_in_the_background() -> None:
    metrics = DataPlaneMetrics()
    metrics.calls.count("/memplane.v1.MemoryService/SearchMemories", grpc.StatusCode.OK, 0.01)
    metrics.observe_stage("rank", 0.001)
    metrics.observe_backend("text_index", "search", "unavailable", 0.2)
    metrics.observe_admission("refused", 0.2)
    metrics.tell_of_policy_age(lambda: 61.5)
    metrics.tell_of_line({"waiting_calls": lambda: 5})
    metrics.tell_of(report, lambda: 3, lambda: {"records_dropped": 4})
    with (
        metrics_served(metrics.registry, "127.0.0.1:0") as address,
        urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response,
    ):
        text = response.read().decode()
    for line in (
        'memplane_call_seconds_count{code="OK",method="SearchMemories"} 1.0',
        'memplane_search_stage_seconds_count{stage="rank"} 1.0',
        'memplane_backend_seconds_count{backend="text_index",operation="search",outcome="unavailable"} 1.0',
        'memplane_admission_wait_seconds_count{outcome="refused"} 1.0',
        'memplane_admission{what="waiting_calls"} 5.0',
        "memplane_policy_generation 3.0",
        "memplane_policy_age_seconds 61.5",
        'memplane_policy_stale{action="deny"} 1.0',
        'memplane_policy_stale{action="serve"} 0.0',
        "memplane_memories 12.0",
        'memplane_backend_lag{adapter="elasticsearch",backend="text_index"} 7.0',
        'memplane_backend_dead_letters{adapter="elasticsearch",backend="text_index"} 2.0',
        'memplane_backend_problems{adapter="elasticsearch",backend="text_index"} 1.0',
        'memplane_breaker_state{backend="text_index",operations="reads"} 2.0',
        'memplane_breaker_opened_total{backend="text_index",operations="reads"} 3.0',
        'memplane_background_failures_total{event="records_dropped"} 4.0',
    ):
        assert line in text
