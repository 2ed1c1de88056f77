"""Who can be the holder of a Lease: whoever writes one in some namespace is no operator by that alone."""

from collections.abc import Callable

import structlog

from kubeslurm.api.kinds import NODESET, SERVICE_ACCOUNT
from kubeslurm.control.rights import on
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.operator.http.access import account_may

# What an operator of this API cannot do without.
NEEDED = on(NODESET, "patch")
ALL_NAMESPACES = ""
VALID = 10.0  # seconds for which an answer counts: rights may be given and taken
log = structlog.get_logger("kubeslurm.operator")


class Holders:
    """Asks the API server whether an account of a namespace has the rights of an operator; in doubt it has."""

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._kube = Kube(connection, Caches(connection), manager="kubeslurm")
        self._fresh: Cooldown[str] = Cooldown(clock)
        self._answers: dict[str, bool] = {}

    async def can_act(self, namespace: str) -> bool:
        """Whether an operator that runs in this namespace could change NodeSets."""
        if self._fresh.remaining(namespace) > 0:
            return self._answers[namespace]
        before, answer = self._answers.get(namespace), await self._ask(namespace)
        self._answers[namespace] = answer
        self._fresh.start(namespace, VALID)
        if not answer and before is not False:
            log.info("a Lease is ignored: no account of its namespace may change NodeSets", namespace=namespace)
        return answer

    async def _ask(self, namespace: str) -> bool:
        try:
            accounts = await self._kube.list(SERVICE_ACCOUNT, namespace)
            served = {nodeset.namespace for nodeset in await self._kube.list(NODESET)} if accounts else set()
            for place in (ALL_NAMESPACES, *sorted(served)):
                for account in accounts:
                    if await account_may(self._connection, account.key, NEEDED, place):
                        return True
        except ApiError as error:
            log.warning("it is not known whether the holder of a Lease is an operator", reason=str(error))
            return True
        return False
