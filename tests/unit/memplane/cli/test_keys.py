import json
from typing import Any

import pytest

from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2
from tests.unit.memplane.cli.test_commands import call
from tests.unit.memplane.client.fakes import AdminRecorder

KEY = policy_pb2.ApiKey(key_id="1a2b3c4d", principal="sales", author="lin", description="CI")
SECRET = "mpk_1a2b3c4d_secret-of-the-tests"


def control_plane(secret: str = SECRET, **spread: int) -> AdminRecorder:
    revision = policy_pb2.PolicyRevision(generation=7)
    return AdminRecorder(
        CreateApiKey=lambda _: pb.CreateApiKeyResponse(api_key=KEY, secret=secret, revision=revision),
        ListApiKeys=lambda request: pb.ListApiKeysResponse(
            api_keys=[KEY], next_page_token="" if request.page_token else "more"
        ),
        RevokeApiKey=lambda _: pb.RevokeApiKeyResponse(
            api_key=KEY, revision=revision, propagation=policy_pb2.PropagationSummary(connected=2, acked=1, **spread)
        ),
    )


async def test_the_key_alone_is_on_stdout_so_that_it_can_be_piped() -> None:
    recorder = control_plane()
    made = await call(
        recorder, "keys", "create", "sales", "--expires", "2027-01-31", "--description", "CI of the sales team"
    )
    assert (made.exit_code, made.stdout) == (0, f"{SECRET}\n")
    assert "key 1a2b3c4d of sales, without an end; it is not shown again" in made.stderr
    assert SECRET not in made.stderr
    (request,) = recorder.requests
    assert (request.principal, request.description) == ("sales", "CI of the sales team")
    assert request.expire_time.ToJsonString() == "2027-01-31T00:00:00Z"
    assert len(request.request_id) == 32


async def test_as_json_the_key_stands_in_the_answer() -> None:
    made = await call(control_plane(), "keys", "create", "sales", "--json")
    assert json.loads(made.stdout)["secret"] == SECRET


async def test_a_key_whose_answer_was_lost_is_told_and_ends_with_1() -> None:
    lost = await call(control_plane(secret=""), "keys", "create", "sales")
    assert (lost.exit_code, lost.stdout) == (1, "")
    assert "key 1a2b3c4d was made, but the answer with it was lost" in lost.stderr


async def test_every_page_of_keys_is_listed() -> None:
    recorder = control_plane()
    shown = await call(recorder, "keys", "list", "sales", "--ended")
    assert shown.stdout.count("1a2b3c4d") == 2
    assert [(each.principal, each.include_ended) for each in recorder.requests] == [("sales", True)] * 2
    assert len(json.loads((await call(control_plane(), "keys", "list", "--json")).stdout)) == 2


@pytest.mark.parametrize(
    ("spread", "code"), [({}, 0), ({"pending": 1}, 1), ({"nacked": 1}, 1), ({"lost": 1}, 1)], ids=str
)
async def test_revoking_ends_with_1_while_a_data_plane_does_not_know(spread: dict[str, Any], code: int) -> None:
    recorder = control_plane(**spread)
    done = await call(recorder, "keys", "revoke", "1a2b3c4d", "--comment", "lost", "--wait", "5")
    assert done.exit_code == code
    assert "key 1a2b3c4d of sales was revoked" in done.stdout
    (request,) = recorder.requests
    assert (request.key_id, request.comment, request.wait_for_acks.seconds) == ("1a2b3c4d", "lost", 5)
