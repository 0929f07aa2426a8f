"""Embeds texts in a child process; see `dataplane.embed`."""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from memplane.cli.child import answers
from memplane.evaluation.calibrate import Vectors
from memplane.evaluation.similarity_fit import Floats

MODULE = "dataplane.embed"


async def embed(
    settings: Mapping[str, object], questions: Sequence[str], passages: Sequence[str], advance: Callable[[], object]
) -> Vectors:
    """The vectors of the texts; `advance` is called after each. Raises ChildFailed."""
    texts = [*(("question", text) for text in questions), *(("passage", text) for text in passages)]
    lines = [settings, *({"as": kind, "text": text} for kind, text in texts)]
    model = ""
    vectors: list[Floats] = []
    async for answer in answers(MODULE, lines, 1 + len(texts)):
        if not model:
            model = str(answer["model"])
            continue
        vectors.append(np.frombuffer(b64decode(answer["vector"]), dtype="<f4").astype(np.float64))
        advance()
    asked = dict(zip(questions, vectors, strict=False))
    return Vectors(model, asked, dict(zip(passages, vectors[len(questions) :], strict=True)))
