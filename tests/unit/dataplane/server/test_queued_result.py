from dataplane.pipelines.settle import Settled
from dataplane.server.queued import QueuedRequests
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb

QUOTES = '"He lives in Porto" or, as before, "He lives in Lisbon"?'


def test_the_result_of_a_queued_write_holds_no_word_of_the_memory() -> None:
    reasons = [
        memory_pb2.Reason(code="FORMAT_CHECK", message="the identifier 0000-Porto is incomplete (format_checks: id)"),
        memory_pb2.Reason(code="CLARIFY", message="contradicts mem_1 of the same standing"),
    ]
    response = pb.WriteMemoryResponse(
        memory=memory_pb2.Memory(id="mem_2", namespace="dept.sales", content="He lives in Porto"),
        decision=memory_pb2.Decision(reasons=reasons),
    )
    told = QueuedRequests(lambda: 384).result(Settled(response, 7, QUOTES))
    assert told.memory.id == "mem_2"
    assert [reason.code for reason in told.decision.reasons] == ["FORMAT_CHECK", "CLARIFY"]
    assert "mem_1" in told.decision.reasons[1].message
    assert not [word for word in ("Porto", "Lisbon", "lives") if word in str(told)]
