"""Revisions, diagnostics and effective values as messages of the contract."""

from collections.abc import Sequence
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.json_format import ParseDict

from controlplane.access_diff import AccessDifference
from controlplane.compile import EffectiveValue
from controlplane.diagnose import Diagnostic, Severity
from controlplane.diff import ABSENT, ValueDifference
from controlplane.revisions import Revision
from memplane.policy.cells import ALL_CELLS
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


def value_change_message(item: ValueDifference) -> policy_pb2.PolicyValueChange:
    """One value before and after."""
    message = policy_pb2.PolicyValueChange(path=item.path, file=item.file, line=item.line)
    if item.before is not ABSENT:
        message.before.CopyFrom(ParseDict(_plain(item.before), struct_pb2.Value()))
    if item.after is not ABSENT:
        message.after.CopyFrom(ParseDict(_plain(item.after), struct_pb2.Value()))
    return message


def access_change_message(item: AccessDifference) -> policy_pb2.AccessChange:
    """One access before and after."""
    return policy_pb2.AccessChange(
        principal=item.principal,
        namespace=item.namespace,
        permission=item.permission,
        before=_extent(item.before),
        after=_extent(item.after),
    )


def _extent(cells: int) -> policy_pb2.AccessExtent.ValueType:
    if cells == ALL_CELLS:
        return policy_pb2.ACCESS_EXTENT_ALL
    return policy_pb2.ACCESS_EXTENT_CONDITIONAL if cells else policy_pb2.ACCESS_EXTENT_NONE


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value
