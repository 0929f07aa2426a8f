"""The section `degradation_policy`: limits of backends and callers, the same for every namespace."""

from typing import Annotated, Literal

from pydantic import Field

from memplane.policy.section import Section

StaleAction = Literal["serve", "read_only", "deny"]
"""What a data plane does with a stale policy: serve on and say so, answer reads only, or answer nothing."""


class BackendLimits(Section):
    """How long callers wait for a backend, how many at once, and when it counts as down.

    A call that fails or outlasts its time counts as failed. When `failure_ratio` of the last calls failed, and at least
    `min_failures`, the breaker opens: nobody waits for the backend any more until a probe, tried every
    `probe_interval_s`, has found it well. Reads and writes have a breaker each.
    """

    timeout_s: Annotated[float, Field(ge=0.01, le=60.0)] = 1.0
    write_timeout_s: Annotated[float, Field(ge=0.01, le=300.0)] = 10.0
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    failure_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    min_failures: Annotated[int, Field(ge=1, le=20)] = 5
    probe_interval_s: Annotated[float, Field(ge=0.05, le=60.0)] = 0.5


def _record_store_limits() -> BackendLimits:
    return BackendLimits(timeout_s=2.0)


def _cache_limits() -> BackendLimits:
    return BackendLimits(timeout_s=0.5, write_timeout_s=1.0, concurrency=256)


def _embedder_limits() -> BackendLimits:
    return BackendLimits(timeout_s=2.0, write_timeout_s=30.0)


class Admission(Section):
    """How much work a data plane takes on, and how it is shared between namespaces.

    Reads and writes stand in lines of their own. Beyond `concurrency` calls at once, calls wait in a line of at most
    `waiting` calls and `waiting_bytes` of requests, at most `max_wait_s` each; whatever comes on top is refused with
    RESOURCE_EXHAUSTED at once. Who waits is served fairly: each subtree of namespaces that has waiting calls gets an
    equal share of its parent's.
    """

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    waiting: Annotated[int, Field(ge=0, le=100_000)] = 1_000
    waiting_bytes: Annotated[int, Field(ge=1_048_576, le=17_179_869_184)] = 268_435_456
    max_wait_s: Annotated[float, Field(ge=0.0, le=300.0)] = 5.0


class DegradationPolicy(Section):
    """Time limits, breakers and admission of every data plane, and what it does when nobody confirms its policy.

    Not to be overridden for a namespace. A policy is stale once the control plane has not confirmed it for
    `stale_after_s`, 0: never; then `stale_action` holds until it does.
    """

    record_store: BackendLimits = Field(default_factory=_record_store_limits)
    vector_index: BackendLimits = Field(default_factory=BackendLimits)
    text_index: BackendLimits = Field(default_factory=BackendLimits)
    cache: BackendLimits = Field(default_factory=_cache_limits)
    queue: BackendLimits = Field(default_factory=BackendLimits)
    embedder: BackendLimits = Field(default_factory=_embedder_limits)
    admission: Admission = Field(default_factory=Admission)
    stale_after_s: Annotated[float, Field(ge=0.0, le=31_536_000.0)] = 0.0
    stale_action: StaleAction = "serve"
