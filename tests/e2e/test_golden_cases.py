"""Golden cases at a real control plane: what breaks a promise does not get in force, and a promise may be changed."""

from pathlib import Path

from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually_async
from tests.e2e.control_process import ControlProcess, control_plane


def policy(threshold: float) -> str:
    return f"write_policy:\n  threshold: {threshold}\n"


def cases(layer: str) -> str:
    return (
        "write:\n"
        "  - name: a contract's end\n"
        "    given: {text: The contract ends in March, model_score: 0.7}\n"
        f"    expect: {{layer: {layer}}}\n"
    )


def inline(threshold: float, layer: str) -> admin_pb2.InlineDocuments:
    texts = {"a.yaml": policy(threshold), "a.test.yaml": cases(layer)}
    made = [policy_pb2.PolicyDocument(name=name, content=text.encode()) for name, text in texts.items()]
    return admin_pb2.InlineDocuments(documents=made)


async def reload(control: ControlProcess, threshold: float, layer: str) -> admin_pb2.ReloadPolicySetResponse:
    request = admin_pb2.ReloadPolicySetRequest(inline=inline(threshold, layer))
    response: admin_pb2.ReloadPolicySetResponse = await control.call("ReloadPolicySet", request)
    return response


async def test_a_case_that_fails_refuses_a_reload_and_cases_come_back_with_a_rollback(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(policy(0.7))
    (tmp_path / "policies" / "a.test.yaml").write_text(cases("LONG_TERM"))
    async with control_plane(tmp_path) as control:
        before = await control.in_force()
        assert before[1] == 1
        refused = await reload(control, 0.8, "LONG_TERM")
        [told] = refused.diagnostics
        assert not refused.accepted
        assert (told.code, told.file, told.line, told.column) == ("CASE_FAILED", "a.test.yaml", 4, 21)
        assert told.message == '"a contract\'s end": expected layer LONG_TERM; came layer SHORT_TERM'
        checked = await control.call(
            "ValidatePolicySet", admin_pb2.ValidatePolicySetRequest(inline=inline(0.8, "LONG_TERM"))
        )
        assert (checked.valid, [each.code for each in checked.diagnostics]) == (False, ["CASE_FAILED"])
        assert await control.in_force() == before

        (control.folder / "a.yaml").write_text(policy(0.9))
        await eventually_async(control.log, lambda log: "CASE_FAILED" in log, 60.0)
        assert await control.in_force() == before

        assert (await reload(control, 0.8, "SHORT_TERM")).revision.generation == 2
        rolled = await control.call("RollbackPolicySet", admin_pb2.RollbackPolicySetRequest(generation=1))
        assert (rolled.revision.generation, list(rolled.diagnostics)) == (3, [])
        assert await control.document_of(3, "a.test.yaml") == cases("LONG_TERM")

        await control.kill()
        await control.start()
        assert (await control.in_force())[1] == 3
