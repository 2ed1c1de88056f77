"""Reads the other objects that the rules need; what cannot be read is not checked, and never a reason to refuse."""

from typing import Protocol, TypeVar

import structlog

from kubeslurm.api.kinds import CONFIGMAP, NODESET, PERSISTENT_VOLUME_CLAIM, Kind
from kubeslurm.api.resource import Resource, SlurmResource
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import ApiError, Forbidden
from kubeslurm.webhooks.rules import Facts

T = TypeVar("T", bound=Resource)
log = structlog.get_logger("kubeslurm.webhooks")


class Reader(Protocol):
    """The part of the client that admission needs."""

    async def get(self, kind: Kind[T], key: Key) -> T | None: ...

    async def list(self, kind: Kind[T], namespace: str = "") -> list[T]: ...


async def facts_for(new: SlurmResource, reader: Reader) -> Facts:
    """The facts that the rules for this object need."""
    try:
        if isinstance(new, Controller):
            return await _controller(new, reader)
        if isinstance(new, NodeSet):
            return Facts(nodesets=tuple(await reader.list(NODESET, new.namespace)))
    except Forbidden as error:  # the role does not allow it; the author of the object can do nothing about that
        log.info(
            "the webhook has no right to read other objects", object=f"{new.namespace}/{new.name}", error=str(error)
        )
    except ApiError as error:
        log.warning("the webhook could not read other objects", object=f"{new.namespace}/{new.name}", error=str(error))
        return Facts(unchecked=(f"objects it refers to could not be checked: {error}",))
    return Facts()


async def _controller(new: Controller, reader: Reader) -> Facts:
    found: dict[str, ConfigMap | None] = {}
    for ref in new.spec.configFileRefs or ():
        found[ref.name] = await reader.get(CONFIGMAP, Key(new.namespace, ref.name))
    claim = new.spec.persistence.existingClaim if new.spec.persistence and new.spec.ha and new.spec.ha.enabled else ""
    volume = await reader.get(PERSISTENT_VOLUME_CLAIM, Key(new.namespace, claim)) if claim else None
    return Facts(found, volume)
