import urllib.request

import grpc
import pytest

from controlplane.fleet import Fleet, Target
from controlplane.metrics import ControlPlaneMetrics
from memplane.rpc.metrics import metrics_served
from memplane.rpc.server import AddressInUse
from memplane.v1 import policy_pb2


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
        return response.read().decode()


async def test_a_scrape_has_calls_and_the_fleet_by_state_and_no_ids() -> None:
    fleet, metrics = Fleet(), ControlPlaneMetrics()
    target = Target("sha256:1", 7)
    fleet.publish(target)
    for number in range(3):
        session = fleet.connect(policy_pb2.NodeInfo(node_id=f"secret-{number}"), target if number else Target(), 1)
    fleet.disconnect("secret-2", session, 2)
    metrics.tell_of(fleet, lambda: "broken")
    metrics.calls.count("/memplane.v1.PolicyAdminService/ReloadPolicySet", grpc.StatusCode.OK, 0.02)
    metrics.calls.count("", grpc.StatusCode.UNIMPLEMENTED, 0.001)
    with metrics_served(metrics.registry, "127.0.0.1:0") as address:
        text = scrape(address)
    assert "memplane_policy_generation 7.0" in text
    assert "memplane_policy_folder_in_force 0.0" in text
    assert 'memplane_data_planes{connected="yes",state="NOT_SENT"} 1.0' in text
    assert 'memplane_data_planes{connected="no",state="SYNCED"} 1.0' in text
    assert 'memplane_call_seconds_count{code="OK",method="ReloadPolicySet"} 1.0' in text
    assert 'memplane_call_seconds_count{code="UNIMPLEMENTED",method="unknown"} 1.0' in text
    assert "secret" not in text


def test_an_address_in_use_is_told() -> None:
    metrics = ControlPlaneMetrics()
    with (
        metrics_served(metrics.registry, "127.0.0.1:0") as address,
        pytest.raises(AddressInUse, match="metrics"),
        metrics_served(metrics.registry, address),
    ):
        pass


def test_no_address_serves_nothing() -> None:
    with metrics_served(ControlPlaneMetrics().registry, "") as address:
        assert address == ""
