"""Whether server and index can be used: making the index, and what is wrong with it."""

from collections.abc import Iterator, Mapping
from typing import Any

from dataplane.adapters.elasticsearch.connection import (
    BACKEND,
    CERTIFICATE,
    NOT_HTTP,
    OTHER_PRODUCT,
    Connection,
    Refused,
    unavailable,
)
from dataplane.adapters.elasticsearch.layout import Layout
from dataplane.errors import Misconfigured
from dataplane.ports import Examination, Problem

MAJORS = (8, 9)
_COMES_BACK = "the next write makes it anew, and it is filled from the record store"
_BLOCKS = {
    "read_only_allow_delete": "the disk of a node is over its flood stage: free space there",
    "read_only": "somebody set index.blocks.read_only: take it back",
    "write": "somebody set index.blocks.write: take it back",
}


async def prepare(connection: Connection, layout: Layout, deadline_s: float) -> bool:
    """Makes the index unless it is there, and checks it; True when it was made.

    Raises Misconfigured when something answers that cannot be used, BackendUnavailable when nothing does.
    """
    try:
        versions = await _server_versions(connection, deadline_s)
        _check_versions(versions)
        index = await _described(connection, layout.alias, deadline_s)
        is_new = not index
        if is_new:
            await _make(connection, layout, deadline_s)
            index = await _described(connection, layout.alias, deadline_s)
    except Refused as refused:
        raise _misconfigured(refused, layout, connection.hosts) or unavailable(refused.status, refused.kind) from None
    for problem in _index_problems(layout, index):
        raise Misconfigured(BACKEND, problem.message)
    return is_new


async def examine(connection: Connection, layout: Layout, deadline_s: float) -> Examination:
    """What answers and what is wrong with it. Raises BackendUnavailable."""
    try:
        versions = await _server_versions(connection, deadline_s)
        index = await _described(connection, layout.alias, deadline_s)
        problems = [*_version_problems(versions), *_index_problems(layout, index)]
        if index:
            health = await connection.ask(lambda client: client.cluster.health(index=layout.alias), deadline_s)
            problems += _health_problems(health)
    except Refused as refused:
        wrong = _misconfigured(refused, layout, connection.hosts)
        if wrong is None:
            raise unavailable(refused.status, refused.kind) from None
        return Examination("Elasticsearch", (Problem("ACCESS_REFUSED", wrong.problem),))
    return Examination(f"Elasticsearch {', '.join(sorted(versions))}", tuple(problems))


async def replace(connection: Connection, layout: Layout, deadline_s: float) -> None:
    """Puts an empty index behind the alias in one step, then removes the one before.

    A search that is under way while that goes may fail.
    """
    try:
        # Also what an earlier call left behind that was cut short.
        before = list(await _described(connection, layout.generations, deadline_s))
        fresh = layout.generation(max(map(layout.number_of, before), default=0) + 1)
        await _put_template(connection, layout, deadline_s)
        await connection.ask(lambda client: client.indices.create(index=fresh), deadline_s)
        actions: list[dict[str, Any]] = [{"add": {"index": fresh, "alias": layout.alias, "is_write_index": True}}]
        actions += [{"remove": {"index": name, "alias": layout.alias, "must_exist": False}} for name in before]
        await connection.ask(lambda client: client.indices.update_aliases(actions=actions), deadline_s)
        if before:
            await connection.ask(lambda client: client.indices.delete(index=before), deadline_s)
    except Refused as refused:
        raise unavailable(refused.status, refused.kind) from None


async def make_again(connection: Connection, layout: Layout, deadline_s: float) -> None:
    """Makes the index, empty, when somebody deleted it or its alias; several may do it at once."""
    try:
        if not await _described(connection, layout.alias, deadline_s):
            await _make(connection, layout, deadline_s)
    except Refused as refused:
        raise unavailable(refused.status, refused.kind) from None


async def _make(connection: Connection, layout: Layout, deadline_s: float) -> None:
    """Makes the first generation, or the one after those that no alias names any more; these go."""
    orphans = list(await _described(connection, layout.generations, deadline_s))
    fresh = layout.generation(max(map(layout.number_of, orphans), default=0) + 1)
    await _put_template(connection, layout, deadline_s)
    aliases = {layout.alias: {"is_write_index": True}}  # of which the server allows one: nobody makes a second index
    try:
        await connection.ask(lambda client: client.indices.create(index=fresh, aliases=aliases), deadline_s)
        if orphans:
            await connection.ask(
                lambda client: client.indices.delete(index=orphans, ignore_unavailable=True), deadline_s
            )
    except Refused as refused:
        if refused.kind != "resource_already_exists_exception":  # another data plane was faster
            raise


async def _put_template(connection: Connection, layout: Layout, deadline_s: float) -> None:
    await connection.ask(lambda client: client.indices.put_index_template(**layout.template()), deadline_s)


async def _server_versions(connection: Connection, deadline_s: float) -> set[str]:
    """Of all nodes. A bare distribution has no `GET /`, which would be the usual way."""
    answer = await connection.ask(
        lambda client: client.nodes.info(metric="http", filter_path="nodes.*.version"), deadline_s
    )
    return {node["version"] for node in answer.get("nodes", {}).values()}


async def _described(connection: Connection, name: str, deadline_s: float) -> Mapping[str, Any]:
    """Aliases, mapping and settings of the indices behind an alias or pattern; empty when there is none."""
    try:
        answer = await connection.ask(lambda client: client.indices.get(index=name), deadline_s)
    except Refused as refused:
        if refused.status == 404:
            return {}
        raise
    return dict(answer)


def _check_versions(versions: set[str]) -> None:
    for problem in _version_problems(versions):
        raise Misconfigured(BACKEND, problem.message)


def _version_problems(versions: set[str]) -> Iterator[Problem]:
    for version in sorted(versions):
        if int(version.partition(".")[0]) not in MAJORS:
            yield Problem("SERVER_NOT_SUPPORTED", f"Elasticsearch {version} is not supported; take one of 8 or 9")


def _index_problems(layout: Layout, described: Mapping[str, Any]) -> Iterator[Problem]:
    if not described:
        yield Problem("INDEX_MISSING", f"the index {layout.alias} is gone; {_COMES_BACK}")
    for name, index in described.items():
        meta = index.get("mappings", {}).get("_meta", {})
        if layout.number_of(name) == 0 or {key: meta.get(key) for key in layout.meta} != layout.meta:
            advice = f"delete it (it is filled again from the record store), or set another prefix than that of {name}"
            yield Problem("INDEX_NOT_OURS", f"the index {name} was made by another program or release; {advice}")
        blocks = index.get("settings", {}).get("index", {}).get("blocks", {})
        for block, advice in _BLOCKS.items():
            if blocks.get(block) == "true":
                yield Problem("READ_ONLY", f"the index {name} takes no writes; {advice}")


def _health_problems(health: Mapping[str, Any]) -> Iterator[Problem]:
    missing, starting = health["unassigned_shards"], health["initializing_shards"]
    where = f"{missing} of its shards lie on no node"
    if health["status"] == "red":
        told = f"{where}; bring those nodes back" if missing else f"{starting} of its shards are starting; wait"
        yield Problem("SHARDS_MISSING", f"part of the index cannot be searched: {told}")
    elif health["status"] == "yellow" and missing:
        yield Problem("COPIES_MISSING", f"copies are missing: {where}; add nodes, or set replicas to 0 for one")


def _misconfigured(refused: Refused, layout: Layout, hosts: str) -> Misconfigured | None:
    if refused.status == 401:
        return Misconfigured(BACKEND, "Elasticsearch refuses the user or key; check api_key, or username and password")
    if refused.status == 403:
        needed = f"the cluster privileges monitor and manage_index_templates and all on {layout.alias}*"
        return Misconfigured(BACKEND, f"the user or key may not do what is needed; grant {needed}")
    if refused.kind == CERTIFICATE:
        problem = "the server's certificate is not signed for its name by an authority given; check ca_file"
        return Misconfigured(BACKEND, problem)
    if refused.status in (404, 405) or refused.kind == OTHER_PRODUCT:
        return Misconfigured(BACKEND, f"what answers at {hosts} is not Elasticsearch 8 or 9; check hosts")
    if refused.kind == NOT_HTTP:
        problem = f"what answers at {hosts} does not speak HTTP, or only over TLS; check hosts: URL and port"
        return Misconfigured(BACKEND, problem)
    return None
