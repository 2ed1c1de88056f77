"""Fetches the other objects that the rules look at; what cannot be fetched is left unchecked, never a refusal."""

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
    """What the rules for this object need to know."""
    try:
        if isinstance(new, Controller):
            return await _controller(new, reader)
        if isinstance(new, NodeSet):
            return Facts(nodesets=tuple(await reader.list(NODESET, new.namespace)))
    except Forbidden as error:  # a role from elsewhere; the author of the object can do nothing about it
        log.info("admission may not look up other objects", object=f"{new.namespace}/{new.name}", error=str(error))
    except ApiError as error:
        log.warning("admission could not look up other objects", object=f"{new.namespace}/{new.name}", error=str(error))
        return Facts(unchecked=(f"objects it refers to could not be checked: {error}",))
    return Facts()


async def _controller(new: Controller, reader: Reader) -> Facts:
    found: dict[str, ConfigMap | None] = {}
    for ref in new.spec.configFileRefs or ():
        found[ref.name] = await reader.get(CONFIGMAP, Key(new.namespace, ref.name))
    claim = new.spec.persistence.existingClaim if new.spec.persistence and new.spec.ha and new.spec.ha.enabled else ""
    volume = await reader.get(PERSISTENT_VOLUME_CLAIM, Key(new.namespace, claim)) if claim else None
    return Facts(found, volume)
