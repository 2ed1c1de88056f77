"""The Secret with our copy of a Controller's signing key."""

import base64

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import SECRET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree


def kept_key(controller: Controller, key: bytes) -> Tree:
    """A copy of the key that signs our tokens: an uninstall deletes the original first, and draining needs it last."""
    own = {"labels": labels.slurmctld(controller.name)}
    return object_tree(
        SECRET,
        child_metadata(controller, names.kept_key(controller.name), inherited(controller), own),
        type="Opaque",
        data={names.JWT_KEY_FILE: base64.b64encode(key).decode()},
    )
