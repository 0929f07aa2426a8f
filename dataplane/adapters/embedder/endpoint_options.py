"""Where an embedding endpoint is and how it is asked."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from memplane.options import check_ranges
from memplane.settings import BadConfig, Secret

_RANGES = {
    "dimension": (1, 65_536),
    "timeout_s": (0.01, 600),
    "batch_size": (1, 2048),
    "max_waiting": (1, 10_000_000),
    "retries": (0, 20),
    "concurrency": (1, 256),
    "max_tokens": (8, 1_000_000),
}


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """An OpenAI-compatible `POST {url}/embeddings`. Raises BadConfig, naming the field, for what cannot be right.

    Attributes:
        url: Base such as `http://host:8080/v1`, without `/embeddings`.
        model: The endpoint's name of the model.
        dimension: Length of its vectors; `check` compares.
        api_key: Sent as bearer token.
        timeout_s: One request may take as long, and never beyond the caller's deadline.
        batch_size: Texts a request, at most.
        max_waiting: Texts that may be under way for queries, and as many for passages; more are refused at once.
        retries: Attempts after the first one.
        concurrency: Requests at once for queries, and as many for passages.
        query_prefix: Put before each question, as e5 and BGE want it.
        passage_prefix: Put before each memory.
        max_tokens: Texts are cut there, counted with the bundled tokenizer (see `token_count`); the prefix adds to it.
        calibration: File that `memplane eval calibrate` wrote; None: see `endpoint_calibration`.
        ca_file: Certificates to trust instead of the usual authorities.
    """

    url: str
    model: str
    dimension: int
    api_key: Secret | None = None
    timeout_s: float = 10.0
    batch_size: int = 32
    max_waiting: int = 4096
    retries: int = 4
    concurrency: int = 4
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 480
    calibration: Path | None = None
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        if "@" in self.url:  # first of all, for other messages show the URL
            raise BadConfig("url: give it without user and password; the key has a setting of its own")
        try:
            parts, _port = urlsplit(self.url), urlsplit(self.url).port
        except ValueError as error:
            raise BadConfig(f"url: {self.url!r} is not a base URL: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadConfig(f"url: {self.url!r} is not a base URL such as http://host:8080/v1")
        if parts.query or parts.fragment:
            raise BadConfig("url: give it without query and fragment; the key has a setting of its own")
        if not self.model:
            raise BadConfig("model: is required; give the name by which the endpoint knows it")
        if any(not "!" <= character <= "~" for character in self.api_key or ""):
            raise BadConfig("api_key: holds spaces or characters beyond ASCII")
        check_ranges(self, _RANGES)

    @property
    def name(self) -> str:
        """The model's name in the stores: other dimensions or prefixes make other embeddings, so they are part of it.

        Such as `endpoint:bge-m3@1024`, with prefixes `endpoint:e5-large@1024+3f9a1c20`.
        """
        prefixes = f"{len(self.query_prefix)}:{self.query_prefix}{self.passage_prefix}".encode()
        mark = f"+{blake2b(prefixes, digest_size=4).hexdigest()}" if self.query_prefix or self.passage_prefix else ""
        return f"endpoint:{self.model}@{self.dimension}{mark}"
