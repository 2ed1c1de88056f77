"""A small operator to run as a process: copies every input ConfigMap into an output one, as leader only."""

import asyncio
import signal
import sys
from pathlib import Path

from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Manager
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.leader import Leader, Timing
from kubeslurm.kube.transport.connection import Connection, connect

LEASE = "replica-test"
# A request may take twice `retry`: a machine that stalls for some seconds must not lose the Lease.
TIMING = Timing(lease=20.0, renew=16.0, retry=1.0)


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    fence = Fence()
    connection = Connection(connect(Path(kubeconfig)), fence=fence)
    caches = Caches(connection, namespaces=[namespace])
    maps = caches.add(CONFIGMAP)
    kube = Kube(connection, caches, manager="kubeslurm-replica")

    async def reconcile(key: Key) -> None:
        found = maps.get(key)
        if found is not None and found.metadata.labels.get("role") == "input":
            metadata = {"namespace": key.namespace, "name": f"out-{key.name}", "labels": {"role": "output"}}
            data = dict(found.data) | {"by": identity}
            await kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    leader = Leader(connection, fence, namespace=namespace, name=LEASE, identity=identity, timing=TIMING)
    manager = Manager(gate=leader.acquired)
    controller = Controller("copy", reconcile)
    controller.watch(maps, lambda each: [Key(*each.key)])
    for name, store in caches.stores:
        manager.add_store(name, store)
    for name, source in caches.reflectors:
        manager.add_source(name, source)
    manager.add_source("leader", leader)
    manager.add_controller(controller)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.stop)
    await manager.run()
    await leader.release()
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
