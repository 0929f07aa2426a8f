"""Domain errors as gRPC statuses."""

import inspect

import grpc
import pytest
from google.rpc import error_details_pb2

from memplane import errors
from memplane.errors import InvalidField, MemPlaneError, PolicyNotLoaded, StaleEtag, Violation
from memplane.rpc.errors import CODES, MAX_DETAILS_BYTES, code_of, reason_name, status_of, trailers_of
from memplane.v1 import error_reason_pb2 as reasons


def test_every_reason_of_the_contract_has_a_code() -> None:
    assert set(CODES) == set(reasons.ErrorReason.values()) - {reasons.ERROR_REASON_UNSPECIFIED}


@pytest.mark.parametrize(
    "kind", [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MemPlaneError)]
)
def test_every_error_has_a_reason_of_the_contract(kind: type[MemPlaneError]) -> None:
    assert kind.reason in CODES


def test_a_status_carries_reason_domain_and_facts() -> None:
    status = status_of(StaleEtag("v1", "v2"))
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == ("STALE_ETAG", "memplane", {"current_etag": "v2"})
    assert status.code == grpc.StatusCode.ABORTED.value[0]


def test_a_thousand_long_violations_stay_under_the_limit_and_remain_invalid_argument() -> None:
    error = InvalidField([Violation("f" * 50_000, "d" * 50_000)] * 1000)
    status = status_of(error)
    assert status.ByteSize() <= MAX_DETAILS_BYTES
    assert code_of(error) is grpc.StatusCode.INVALID_ARGUMENT
    bad = error_details_pb2.BadRequest()
    assert status.details[1].Unpack(bad)
    assert bad.field_violations


def test_what_may_work_later_says_when_in_detail_and_trailer() -> None:
    error = PolicyNotLoaded()
    status = status_of(error)
    retry = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.seconds == 2
    assert ("grpc-retry-pushback-ms", "2000") in trailers_of(error, status)


def test_a_reason_is_named_without_its_prefix() -> None:
    assert reason_name(reasons.ERROR_REASON_INVALID_FIELD) == "INVALID_FIELD"
