"""The embeddings call of OpenAI's API: one request, its answer checked whole, its failures told apart.

What an endpoint says about a failure can hold the texts of memories, so of its answers only short codes are passed on
(`invalid_api_key`, `model_not_found`), never prose.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from pydantic_core import from_json

from dataplane.adapters.embedder.batching import BACKEND
from dataplane.errors import BackendUnavailable
from dataplane.model import Vector

PATH = "embeddings"
MOST_ERROR_BYTES = 16_384
"""So much of an error's body is read."""
MOST_BYTES_A_VECTOR = 2 * 1024 * 1024
"""Of an answer no more is read: 65,536 numbers of 32 bytes."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ADVICE = {
    400: "it refuses the request; look at model, batch_size and max_tokens",
    401: "it refuses the key; look at api_key",
    403: "the key may not use this model; look at api_key",
    404: "it knows no such path or model; look at url, which ends before /embeddings, and at model",
    405: "it takes no POST there; look at url, which ends before /embeddings",
    413: "the request is too large for it; lower batch_size or max_tokens",
    422: "it refuses the request; look at model, batch_size and max_tokens",
}


class TryAgain(Exception):
    """A failure that may pass; `wait_s`: the seconds for which the endpoint asked to be left alone."""

    def __init__(self, detail: str, wait_s: float = 0.0) -> None:
        super().__init__(detail)
        self.detail = detail
        self.wait_s = wait_s


@dataclass
class EndpointRefuses(BackendUnavailable):
    """The endpoint answers, but not as it must, and will not without a change of settings; the text says which."""


async def post_embeddings(
    client: httpx.AsyncClient, model: str, texts: Sequence[str], dimension: int | None
) -> list[Vector]:
    """One unit vector a text, in order; `dimension` None takes any length. Raises TryAgain or EndpointRefuses."""
    most_bytes = len(texts) * MOST_BYTES_A_VECTOR
    try:
        async with client.stream("POST", PATH, json={"model": model, "input": list(texts)}) as response:
            if response.status_code != 200:
                raise _failure(response, await _read(response, MOST_ERROR_BYTES))
            body = await _read(response, most_bytes)
    except httpx.TransportError as error:
        raise TryAgain(_transport_words(error)) from error
    except RuntimeError as error:  # what uvloop says of a transport that is closed, and httpx of its closed client
        raise TryAgain("the connection to the endpoint was closed") from error
    except httpx.DecodingError as error:
        raise EndpointRefuses(BACKEND, "the endpoint's answer is not compressed as it says") from error
    if len(body) > most_bytes:
        raise EndpointRefuses(BACKEND, f"the endpoint's answer is longer than {most_bytes} bytes; look at url")
    return parse_vectors(body, len(texts), dimension)


def parse_vectors(body: bytes, count: int, dimension: int | None) -> list[Vector]:
    """The vectors of an answer in the order of their texts. Raises EndpointRefuses where it is not what was asked."""
    rows = _rows(body)
    if len(rows) != count:
        raise EndpointRefuses(BACKEND, f"the endpoint sent {len(rows)} vectors for {count} texts")
    found: dict[int, Vector] = {}
    for place, row in enumerate(rows):
        index = row.get("index", place)
        if not isinstance(index, int) or not 0 <= index < count or index in found:
            raise EndpointRefuses(BACKEND, f"the endpoint numbers its vectors wrongly: not 0 to {count - 1}, each once")
        found[index] = _unit(row.get("embedding"), dimension)
    return [found[index] for index in range(count)]


def _rows(body: bytes) -> list[Mapping[str, Any]]:
    try:
        answer = from_json(body)  # 1.5 ms for 32 × 1,024 numbers, where `json` holds the loop for 14 (2026-11)
    except ValueError:
        raise EndpointRefuses(BACKEND, "the endpoint does not answer in JSON; look at url") from None
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise EndpointRefuses(BACKEND, "the endpoint's answer has no list `data`: it is not OpenAI-compatible")
    return rows


def _unit(numbers: Any, dimension: int | None) -> Vector:
    try:
        vector = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EndpointRefuses(BACKEND, "the endpoint sent a vector that is no list of numbers") from None
    if vector.ndim != 1:
        raise EndpointRefuses(BACKEND, "the endpoint sent a vector that is no list of numbers")
    if dimension is not None and len(vector) != dimension:
        raise EndpointRefuses(
            BACKEND, f"the endpoint's vectors have {len(vector)} dimensions, the setting says {dimension}"
        )
    length = float(np.linalg.norm(vector))
    if not math.isfinite(length):
        raise EndpointRefuses(BACKEND, "the endpoint sent a vector with numbers that are not finite")
    if length == 0:
        raise EndpointRefuses(BACKEND, "the endpoint sent a vector of zeros")
    return (vector / length).astype(np.float32)


def _failure(response: httpx.Response, body: bytes) -> TryAgain | EndpointRefuses:
    status = response.status_code
    said = f"the endpoint answered {status}{_code(body)}"
    if status in {408, 425, 429} or status >= 500:
        return TryAgain(said, _retry_after_s(response))
    if 300 <= status < 400:
        return EndpointRefuses(BACKEND, f"{said}: it redirects; give the final address as url")
    return EndpointRefuses(BACKEND, f"{said}: {_ADVICE.get(status, 'look at url and model')}")


def _retry_after_s(response: httpx.Response) -> float:
    """The seconds of Retry-After; 0 where it is absent or a date, which would need the endpoint's clock."""
    value = response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) else 0.0


def _code(body: bytes) -> str:
    """` (code)` where the body has a code as OpenAI, TEI or vLLM put it."""
    try:
        answer = from_json(body)
    except ValueError:
        return ""
    places = (answer.get("error"), answer) if isinstance(answer, dict) else ()
    values = [place.get(key) for place in places if isinstance(place, dict) for key in ("code", "error_type", "type")]
    codes = [value for value in values if isinstance(value, str) and _CODE.fullmatch(value)]
    return f" ({codes[0]})" if codes else ""


async def _read(response: httpx.Response, most_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most_bytes:
            break
    return bytes(body)


def _transport_words(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError):
        return f"the endpoint cannot be reached ({str(error)[:200]}); look at url, and at ca_file for https"
    return f"the connection to the endpoint broke ({type(error).__name__})"
