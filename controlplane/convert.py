"""Revisions, diagnostics and effective values as messages of the contract."""

from collections.abc import Sequence
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.json_format import ParseDict

from controlplane.compile import EffectiveValue
from controlplane.diagnose import Diagnostic, Severity
from controlplane.revisions import Revision
from memplane.v1 import policy_pb2

MAX_DIAGNOSTICS = 1000

_SEVERITIES = {
    Severity.ERROR: policy_pb2.DIAGNOSTIC_SEVERITY_ERROR,
    Severity.WARNING: policy_pb2.DIAGNOSTIC_SEVERITY_WARNING,
}


def revision_message(revision: Revision, *, documents: bool = False) -> policy_pb2.PolicyRevision:
    """A revision, with its documents when asked for."""
    message = policy_pb2.PolicyRevision(
        version_info=revision.version,
        generation=revision.generation,
        author=revision.author,
        comment=revision.comment,
        origin=revision.origin,
        etag=revision.etag,
    )
    message.create_time.FromMicroseconds(revision.create_time_us)
    if documents:
        message.documents.extend(
            policy_pb2.PolicyDocument(name=document.name, content=document.content) for document in revision.documents
        )
    return message


def diagnostic_messages(diagnostics: Sequence[Diagnostic]) -> list[policy_pb2.PolicyDiagnostic]:
    """The first 1,000, errors before warnings."""
    ordered = sorted(diagnostics, key=lambda item: item.severity is not Severity.ERROR)
    return [_diagnostic(item) for item in ordered[:MAX_DIAGNOSTICS]]


def _diagnostic(item: Diagnostic) -> policy_pb2.PolicyDiagnostic:
    return policy_pb2.PolicyDiagnostic(
        severity=_SEVERITIES[item.severity],
        code=item.code,
        message=item.message,
        file=item.file,
        line=item.line,
        column=item.column,
        path=item.path,
    )


def effective_value_message(item: EffectiveValue) -> policy_pb2.EffectiveValue:
    """One value with its place."""
    value: struct_pb2.Value = ParseDict(_plain(item.value), struct_pb2.Value())
    return policy_pb2.EffectiveValue(path=item.path, value=value, file=item.file, line=item.line, layer=item.layer)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value
