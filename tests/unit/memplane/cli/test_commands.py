import asyncio
import json

import pytest
from click.testing import CliRunner, Result
from google.protobuf.struct_pb2 import Value

from memplane.cli.main import cli
from memplane.errors import InvalidField, PermissionDenied
from memplane.v1 import memory_pb2, policy_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1 import policy_admin_service_pb2 as admin_pb
from tests.unit.memplane.client.fakes import AdminRecorder, MemoryRecorder, served

MEMORY = memory_pb2.Memory(
    id="mem_1",
    namespace="a",
    content="Acme renews in March [bold]",
    layer=memory_pb2.LAYER_LONG_TERM,
    state=memory_pb2.STATE_ACTIVE,
    version=3,
)
REVISION = policy_pb2.PolicyRevision(
    version_info="sha256:2", generation=2, documents=[policy_pb2.PolicyDocument(name="w.yaml", content=b"a: 1")]
)


async def invoke(*arguments: str, stdin: str | bytes = "", env: dict[str, str] | None = None) -> Result:
    """Runs the command in a thread, so that the server of the test can answer."""
    return await asyncio.to_thread(CliRunner(env=env).invoke, cli, arguments, input=stdin)


async def call(recorder: MemoryRecorder | AdminRecorder, *arguments: str, stdin: str | bytes = "") -> Result:
    option = "--target" if isinstance(recorder, MemoryRecorder) else "--control"
    async with served(recorder) as address:
        return await invoke(*arguments, option, address, stdin=stdin)


def data_plane() -> MemoryRecorder:
    decision = memory_pb2.Decision(
        action=memory_pb2.DECISION_ACTION_CREATED,
        score=0.8,
        threshold=0.7,
        score_parts=[memory_pb2.ScorePart(channel="rule", abstained=True)],
        reasons=[memory_pb2.Reason(code="SCORE_AT_OR_ABOVE_THRESHOLD", message="well above")],
    )
    version = pb.MemoryVersion(memory=MEMORY, change="UPDATED", principal_id="lin", reason="moved")
    degraded = memory_pb2.Degraded(backend="text_index", reason="TIMEOUT", fallback="vector only")
    return MemoryRecorder(
        WriteMemory=lambda _: pb.WriteMemoryResponse(memory=MEMORY, decision=decision, consistency_token="t1"),
        SearchMemories=lambda _: pb.SearchMemoriesResponse(
            hits=[memory_pb2.Hit(memory=MEMORY, rank=1, score=0.9, explanation="by meaning")], degraded=[degraded]
        ),
        GetContext=lambda _: pb.GetContextResponse(context="[MEMORY_CONTEXT] x [/MEMORY_CONTEXT]", token_count=9),
        GetMemory=lambda _: pb.GetMemoryResponse(memory=MEMORY),
        ListMemories=lambda _: pb.ListMemoriesResponse(memories=[MEMORY]),
        UpdateMemory=lambda _: pb.UpdateMemoryResponse(memory=MEMORY),
        ForgetMemory=lambda request: pb.ForgetMemoryResponse(id=request.id, mode=request.mode),
        ListMemoryVersions=lambda _: pb.ListMemoryVersionsResponse(versions=[version]),
    )


def control_plane(valid: bool = True) -> AdminRecorder:
    severity = policy_pb2.DIAGNOSTIC_SEVERITY_WARNING if valid else policy_pb2.DIAGNOSTIC_SEVERITY_ERROR
    said = policy_pb2.PolicyDiagnostic(
        severity=severity, code="CODE", message="look here", file="w.yaml", line=2, column=3
    )
    spread = policy_pb2.PropagationSummary(connected=1, acked=1, complete=True)
    value = policy_pb2.EffectiveValue(
        path="retrieve_policy.top_k", value=Value(number_value=6), file="w.yaml", line=4, layer="base"
    )
    node = policy_pb2.DataPlaneStatus(
        node=policy_pb2.NodeInfo(node_id="data-1"), sync_state=policy_pb2.SYNC_STATE_SYNCED, connected=True
    )
    return AdminRecorder(
        ValidatePolicySet=lambda _: admin_pb.ValidatePolicySetResponse(
            valid=valid, diagnostics=[said], total_diagnostics=1, version_info="sha256:2"
        ),
        ReloadPolicySet=lambda _: admin_pb.ReloadPolicySetResponse(
            revision=REVISION, accepted=valid, diagnostics=[said], propagation=spread
        ),
        GetPolicySetRevision=lambda _: admin_pb.GetPolicySetRevisionResponse(revision=REVISION),
        ListPolicySetRevisions=lambda _: admin_pb.ListPolicySetRevisionsResponse(revisions=[REVISION]),
        GetEffectivePolicy=lambda _: admin_pb.GetEffectivePolicyResponse(values=[value], generation=2),
        ListDataPlaneStatuses=lambda _: admin_pb.ListDataPlaneStatusesResponse(data_planes=[node], generation=2),
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("write", "a", "Acme renews in March"), "CREATED mem_1 in LONG_TERM"),
        (("search", "a", "when?", "--explain"), "by meaning"),
        (("context", "a", "when?", "--token-budget", "100"), "[MEMORY_CONTEXT] x [/MEMORY_CONTEXT]"),
        (("get", "a", "mem_1"), "Acme renews in March [bold]"),
        (("list", "a", "--state", "active"), "LONG_TERM"),
        (("update", "a", "mem_1", "--content", "x"), "updated mem_1 to version 3"),
        (("forget", "a", "mem_1", "--hard"), "forgot mem_1 (HARD)"),
        (("history", "a", "mem_1"), "moved"),
    ],
)
async def test_memory_commands_speak_to_people_and_to_programs(arguments, shown):
    people = await call(data_plane(), *arguments)
    programs = await call(data_plane(), *arguments, "--json")
    assert (people.exit_code, programs.exit_code) == (0, 0), people.output + programs.output
    assert shown in people.stdout
    assert json.loads(programs.stdout)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("policy", "validate"), "valid: sha256:2"),
        (("policy", "reload"), "accepted: generation 2"),
        (("policy", "show"), "# w.yaml"),
        (("policy", "history"), "sha256:2"),
        (("policy", "effective", "a"), "w.yaml:4"),
        (("fleet",), "SYNCED"),
    ],
)
async def test_policy_commands_speak_to_people_and_to_programs(arguments, shown):
    people = await call(control_plane(), *arguments)
    programs = await call(control_plane(), *arguments, "--json")
    assert (people.exit_code, programs.exit_code) == (0, 0), people.output + programs.output
    assert shown in people.stdout
    assert json.loads(programs.stdout)


async def test_a_refused_policy_ends_with_1_and_names_the_place():
    for command in ("validate", "reload"):
        result = await call(control_plane(valid=False), "policy", command)
        assert result.exit_code == 1
        assert "w.yaml:2:3: ERROR CODE: look here" in result.stdout


async def test_a_folder_is_sent_as_documents(tmp_path):
    (tmp_path / "b.yml").write_text("b: 1\n")
    (tmp_path / "a.yaml").write_text("a: 1\n")
    (tmp_path / "notes.txt").write_text("no policy\n")
    recorder = control_plane()
    await call(recorder, "policy", "validate", str(tmp_path))
    assert [each.name for each in recorder.requests[0].inline.documents] == ["a.yaml", "b.yml"]


async def test_json_drops_enum_prefixes_and_keeps_numbers():
    result = await call(data_plane(), "get", "a", "mem_1", "--json")
    memory = json.loads(result.stdout)
    assert (memory["layer"], memory["kind"], memory["version"]) == ("LONG_TERM", "UNSPECIFIED", 3)


async def test_options_reach_the_request():
    recorder = data_plane()
    await call(
        recorder,
        *("write", "a", "-", "--source", "user", "--tag", "x", "--tag", "y", "--sequence", "0"),
        *("--event-time", "2026-11-30T09:00:00+01:00", "--metadata", '{"ticket": 7}', "--confidence", "0"),
        stdin="from a pipe",
    )
    (request,) = recorder.requests
    assert (request.content, request.source.type) == ("from a pipe", memory_pb2.SOURCE_TYPE_USER)
    assert (list(request.tags), request.metadata["ticket"]) == (["x", "y"], 7)
    assert request.event_time.ToJsonString() == "2026-11-30T08:00:00Z"
    assert request.HasField("confidence")


async def test_a_failed_call_is_one_line_on_stderr_and_1():
    recorder = MemoryRecorder(SearchMemories=_fail(PermissionDenied("memory.read", "a")))
    result = await call(recorder, "search", "a", "who?", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "Error: PERMISSION_DENIED: permission memory.read is not granted on namespace 'a'\n"


async def test_bad_fields_are_named_once():
    result = await call(MemoryRecorder(GetMemory=_fail(InvalidField.one("id", "is no id"))), "get", "a", "x")
    assert result.stderr == "Error: INVALID_FIELD: id: is no id\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "a"),
        ("search", "a", "q", "--top-k", "0"),
        ("write", "a", "x", "--event-time", "yesterday"),
        ("write", "a", "x", "--metadata", "[1]"),
        ("write", "a", "x", "--kind", "facts"),
        ("write", "a", "half \ud83d"),
        ("update", "a", "mem_1"),
        ("policy", "validate", "/nowhere"),
        ("--target", "127.0.0.1:99999", "get", "a", "x"),
        ("get", "a", "x", "--target", "127.0.0.1"),
        ("fleet", "--control", "127.0.0.1:0"),
    ],
)
async def test_wrong_usage_ends_with_2(arguments):
    assert (await invoke(*arguments)).exit_code == 2


async def test_a_port_out_of_range_is_named_with_the_range():
    result = await invoke("get", "a", "x", "--target", "127.0.0.1:99999")
    assert "'127.0.0.1:99999' has no port from 1 to 65535" in result.stderr


async def test_bytes_that_are_no_utf_8_are_named_and_nothing_is_written():
    recorder = data_plane()
    result = await call(recorder, "write", "a", "-", stdin="café".encode("latin-1"))
    assert result.exit_code == 2
    assert "standard input is not UTF-8: byte 0xe9 at offset 3" in result.stderr
    assert recorder.requests == []


async def test_the_fleet_tells_people_and_programs_why_the_folder_is_not_in_force():
    answer = admin_pb.ListDataPlaneStatusesResponse(folder_error="w.yaml:2:3: SYNTAX")
    people, programs = [
        await call(AdminRecorder(ListDataPlaneStatuses=lambda _: answer), "fleet", *extra)
        for extra in ((), ("--json",))
    ]
    assert "the policy folder is NOT in force: w.yaml:2:3: SYNTAX" in people.stdout
    assert json.loads(programs.stdout)["folder_error"] == "w.yaml:2:3: SYNTAX"


async def test_a_folder_that_cannot_be_made_is_one_line_on_stderr(tmp_path):
    (tmp_path / "file").write_text("")
    result = await invoke("up", "--folder", str(tmp_path / "file" / "below"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [f"Error: --folder {tmp_path}/file/below cannot be used: Not a directory"]


async def test_an_option_before_the_command_wins_over_the_environment():
    recorder = data_plane()
    async with served(recorder) as address:
        environment = {"MEMPLANE_TARGET": "127.0.0.1:1", "MEMPLANE_API_KEY": "from-environment"}
        result = await invoke("--target", address, "get", "a", "mem_1", env=environment)
    assert result.exit_code == 0, result.output
    assert recorder.metadata[0]["authorization"] == "Bearer from-environment"


async def test_degraded_answers_say_so_on_stderr():
    result = await call(data_plane(), "search", "a", "q")
    assert "degraded: text_index (TIMEOUT), vector only" in result.stderr


def test_every_command_has_help_with_an_example_and_json():
    for name, command in cli.commands.items():
        for each in getattr(command, "commands", {name: command}).values():
            assert each.help, each.name
            assert "Examples:" in (each.epilog or ""), each.name
            assert "--json" in {option for parameter in each.params for option in parameter.opts}, each.name


def _fail(error: Exception):
    def behaviour(_request):
        raise error

    return behaviour
