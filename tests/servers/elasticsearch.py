"""A real Elasticsearch 8.19, the core alone: no painless, no `_delete_by_query`, no analysers but the built-in ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from tests.servers.process import ServerProcess, free_port, give_away, new_folder
from tools import fetch_elasticsearch


@dataclass
class ElasticsearchServer:
    """One node with its own folder and port, without security.

    `stop` and `kill` keep the data, `start` serves them again on the same port, `close` removes them.
    """

    process: ServerProcess
    port: int

    @classmethod
    def create(cls, settings: Mapping[str, str] | None = None) -> "ElasticsearchServer":
        """Serves an empty node; `settings` are lines of elasticsearch.yml over ours. Takes about 6 s.

        Raises fetch_elasticsearch.Unavailable where Java or the distribution cannot be had.
        """
        variables = fetch_elasticsearch.environment()
        archive = fetch_elasticsearch.fetch(fetch_elasticsearch.CACHE)
        folder = new_folder("elasticsearch")
        home = fetch_elasticsearch.unpack(archive, folder)
        give_away(home)
        port = free_port()
        stated = {"http.port": str(port), "transport.port": str(free_port()), **(settings or {})}
        command = fetch_elasticsearch.command(home, stated)
        process = ServerProcess("Elasticsearch", folder, command, unprivileged=True, environment=variables)
        server = cls(process, port)
        with process.closed_on_failure():
            server.start()
        return server

    @property
    def url(self) -> str:
        """Of the HTTP interface."""
        return f"http://127.0.0.1:{self.port}"

    def delete_all(self) -> None:
        """Deletes every index and every index template."""
        for path in ("/_index_template/*", "/_component_template/*", *self._index_paths()):
            self._send("DELETE", path)

    def start(self) -> None:
        """Serves its data again, once every shard that can be is allocated."""
        self.process.start(self._is_ready, within_s=90)

    def stop(self) -> None:
        """Ends it in good order."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def close(self) -> None:
        """Stops it and removes its data."""
        self.process.close()

    def _index_paths(self) -> list[str]:
        """Each by name, since a wildcard could be forbidden."""
        return [f"/{index['index']}" for index in self._send("GET", "/_cat/indices?format=json").json()]

    def _is_ready(self) -> bool:
        try:
            self._send("GET", "/_cluster/health?wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=1s")
        except httpx.HTTPError:
            return False
        return True

    def _send(self, method: str, path: str) -> httpx.Response:
        # Without `verify`, for it would read every certificate of this machine: 50 ms of work each time it is asked.
        return httpx.request(method, self.url + path, timeout=10, trust_env=False, verify=False).raise_for_status()
