"""What an index entry says, in 16 hex digits: equal for the same vector and the same tokens.

An index keeps the fingerprint beside the entry, so that comparing it with the record store moves no vectors.
"""

from hashlib import blake2b

import numpy as np

from dataplane.model import IndexEntry


def fingerprint(entry: IndexEntry) -> str:
    """BLAKE2b of the vector rounded to half precision, or of the sorted tokens.

    Filter fields are left out: some change without a new version, and the record store decides by them anyway.
    """
    if entry.embedding is not None:
        content = np.ascontiguousarray(entry.embedding, dtype="<f2").tobytes()
    else:
        content = "\n".join(sorted(entry.tokens)).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()
