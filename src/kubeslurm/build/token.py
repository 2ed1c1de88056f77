"""The Secret that a Token is kept in."""

import base64

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.token import Token
from kubeslurm.build.common import parts
from kubeslurm.build.common.merge import merge_metadata

KIND = "Token"


def secret(token: Token, jwt: str, key_hash: str) -> Tree:
    """The issued token. One that is never renewed is written in stone, as its consumers expect."""
    layers = merge_metadata(parts.inherited(token.metadata), {"annotations": {names.KEY_HASH: key_hash}})
    return parts.object_tree(
        "v1",
        "Secret",
        parts.metadata(token.secret_name, token.metadata, KIND, layers),
        type="Opaque",
        immutable=not token.spec.refresh,
        data={token.secret_key: base64.b64encode(jwt.encode()).decode()},
    )
