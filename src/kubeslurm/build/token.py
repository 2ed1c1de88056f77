"""The Secret that a Token is kept in."""

import base64

from kubeslurm.api import names
from kubeslurm.api.kinds import SECRET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.token import Token
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree


def secret(token: Token, jwt: str, key_hash: str) -> Tree:
    """The issued token. One that is never renewed is immutable, as its consumers expect."""
    own = {"annotations": {names.SIGNING_KEY_HASH: key_hash}}
    return object_tree(
        SECRET,
        child_metadata(token, token.secret_name, inherited(token), own),
        type="Opaque",
        immutable=not token.spec.refresh,
        data={token.secret_key: base64.b64encode(jwt.encode()).decode()},
    )
