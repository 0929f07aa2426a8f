"""Who may decide on what waits for a person.

Rules:
1. The permission is asked for as for anything else: on the namespace and the cell of what waits. It is `review`, or
   `share.approve` for what is proposed to be shared.
2. Nobody decides on their own: whoever wrote or proposed it, by whatever credential, and whatever else they may. The
   bootstrap administrator is no exception.
3. What nobody is known to have written is decided on by nobody.
"""

from typing import Literal

from memplane.identity import Identity
from memplane.policy.access import AccessIndex

Reviewing = Literal["review", "share.approve"]


def may_review(
    index: AccessIndex, identity: Identity, author_id: str, permission: Reviewing, namespace: str, cell: int
) -> bool:
    """Whether an identity may approve or reject what `author_id` wrote or proposed; `cell` is that of the memory."""
    if not author_id or identity.principal_id == author_id:
        return False
    return bool(index.cells(identity, permission, namespace) & cell)
