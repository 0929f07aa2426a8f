"""Calls to Elasticsearch within a deadline; what goes wrong leaves here as our errors, without the server's text.

The server's messages quote documents and queries; its error *types* are a fixed vocabulary and are passed on.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from aiohttp import ClientResponseError, ServerDisconnectedError
from elasticsearch import ApiError, AsyncElasticsearch, ConnectionTimeout, SSLError, TransportError
from elasticsearch import UnsupportedProductError as OtherProduct

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.errors import BackendUnavailable

BACKEND = "text_index"
LONGEST_CALL_S = 86_400
"""The client's own limit, out of the way of deadlines. Setting it for each call costs 0.3 ms of processor time: the
client makes a score of objects for it (8.19, 2026-11)."""

Call = Callable[[AsyncElasticsearch], Awaitable[Any]]

OTHER_PRODUCT = "other_product"
NOT_HTTP = "not_http"
CERTIFICATE = "certificate"
"""What `Refused` calls an answer of another product, one that is no HTTP, and a certificate of no authority we know."""

INDEX_NOT_FOUND = "index_not_found_exception"

_STATUS_WORDS = {
    401: "refuses the user or key",
    403: "refuses this to its user",
    413: "refuses a request of this size",
    429: "is overloaded",
    503: "has no copy of the index to answer with",
}

_KIND_WORDS = {
    OTHER_PRODUCT: "is not what answers",
    NOT_HTTP: "is not what answers",
    CERTIFICATE: "shows a certificate that is not trusted",
    INDEX_NOT_FOUND: "has lost the index",
    "cluster_block_exception": "has made the index read-only, or has no master",
}


class IndexMissing(BackendUnavailable):
    """The server has no such index, or no alias before it."""


class Refused(Exception):
    """The server answered with an error: its HTTP status (0: none was read) and its type, "" when it tells none."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(f"{status} {kind}")
        self.status = status
        self.kind = kind


class Connection:
    """The client, with deadlines and our errors."""

    def __init__(self, client: AsyncElasticsearch, hosts: str) -> None:
        self.hosts = hosts
        """Where it looks for the server, for people."""
        self._client = client
        self._is_closed = False

    @classmethod
    def create(cls, options: ElasticsearchOptions) -> "Connection":
        """A client that connects with the first call. A node that does not answer is passed over, errors are not."""
        return cls(
            AsyncElasticsearch(
                list(options.hosts),
                **_access(options),
                **_tls(options),
                retry_on_status=(),
                retry_on_timeout=False,
                max_retries=len(options.hosts) - 1,
                request_timeout=LONGEST_CALL_S,
            ),
            ", ".join(options.hosts),
        )

    async def ask(self, call: Call, deadline_s: float) -> Any:
        """What the server answers. Raises Refused for its errors, BackendUnavailable when it gives no answer."""
        if self._is_closed:
            raise BackendUnavailable(BACKEND, "closed")
        if asyncio.get_running_loop().time() >= deadline_s:
            raise BackendUnavailable(BACKEND, "deadline passed")
        try:
            async with asyncio.timeout_at(deadline_s):
                return (await call(self._client)).body
        except OtherProduct:
            raise Refused(0, OTHER_PRODUCT) from None
        except ApiError as error:
            raise Refused(error.status_code, kind_of(error.body)) from None
        except (TimeoutError, ConnectionTimeout):
            raise BackendUnavailable(BACKEND, "Elasticsearch does not answer in time") from None
        except TransportError as error:
            if _is_certificate(error):
                raise Refused(0, CERTIFICATE) from None
            if _is_caused_by(error, ClientResponseError):
                raise Refused(0, NOT_HTTP) from None
            raise BackendUnavailable(BACKEND, self._unreached(error)) from None
        except RuntimeError:  # the client passes it on: what uvloop and aiohttp say of what is closed
            raise BackendUnavailable(BACKEND, "the connection to Elasticsearch was closed") from None

    async def require(self, call: Call, deadline_s: float) -> Any:
        """What the server answers; its errors count as BackendUnavailable too."""
        try:
            return await self.ask(call, deadline_s)
        except Refused as refused:
            raise unavailable(refused.status, refused.kind) from None

    async def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._is_closed = True
        await self._client.close()

    def _unreached(self, error: TransportError) -> str:
        """A server that stops does so, too, and a proxy with none behind it: it may become better by itself."""
        if _is_caused_by(error, ServerDisconnectedError):
            return f"what listens at {self.hosts} hangs up without an answer; if it goes on, that is no Elasticsearch"
        return "Elasticsearch cannot be reached"


def unavailable(status: int, kind: str) -> BackendUnavailable:
    """An error of the server as ours."""
    words = _KIND_WORDS.get(kind) or _STATUS_WORDS.get(status, "fails")
    detail = " ".join(part for part in (str(status or ""), kind) if part)
    sort = IndexMissing if kind == INDEX_NOT_FOUND else BackendUnavailable
    return sort(BACKEND, f"Elasticsearch {words} ({detail})")


def kind_of(body: object) -> str:
    """The type that an error names."""
    error = body.get("error") if isinstance(body, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else ""


def _access(options: ElasticsearchOptions) -> dict[str, Any]:
    if options.api_key:
        return {"api_key": str(options.api_key)}
    return {"basic_auth": (options.username, str(options.password))} if options.username else {}


def _tls(options: ElasticsearchOptions) -> dict[str, Any]:
    if not any(host.startswith("https:") for host in options.hosts):
        return {}
    if not options.verify_certificates:
        return {"verify_certs": False, "ssl_show_warn": False}
    return {"ca_certs": str(options.ca_file)} if options.ca_file else {}


def _is_certificate(error: TransportError) -> bool:
    return isinstance(error, SSLError) or any(isinstance(cause, ssl.SSLError) for cause in error.errors)


def _is_caused_by(error: TransportError, kind: type[Exception]) -> bool:
    """Whether the client met this with any of the nodes that it tried."""
    return any(isinstance(cause, kind) for tried in (error, *error.errors) for cause in _chain(tried))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
