"""The Python program of benchmarks/runtime.py: watches pods (and nodes) with our engine and prints what it cost.

Like the Go program, it has two indices on pods and a controller that does nothing.
"""

import argparse
import asyncio
import logging
import resource
import time
from pathlib import Path

import msgspec
import structlog

from kubeslurm.api.kinds import NODE, POD
from kubeslurm.api.views import Pod
from kubeslurm.engine import collector
from kubeslurm.engine.controller import Controller
from kubeslurm.engine.key import Key
from kubeslurm.engine.stall import StallMeter
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.objects import key_of
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.kube.transport.http import HttpTransport


class Result(msgspec.Struct, frozen=True):
    """What one program needed for the same changes."""

    objects: int
    changes_seen: int
    sync_s: float
    events_s: float
    cpu_s: float
    peak_rss_mb: float
    worst_stall_ms: float = 0.0

    @property
    def events_per_s(self) -> float:
        return self.changes_seen / self.events_s

    @property
    def cpu_us_per_event(self) -> float:
        """CPU time for each object, from the initial list or from a change."""
        return self.cpu_s / (self.objects + self.changes_seen) * 1e6


class Count:
    """Counts changes after the initial list, and is done at the last one."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.seen = 0
        self.done = asyncio.Event()

    def __call__(self, _key: Key, old: Pod | None, _new: Pod | None) -> None:
        if old is not None:
            self.seen += 1
            if self.seen == self.events:
                self.done.set()


def make_caches(connection: Connection, namespace: str, nodes: bool) -> Caches:
    """Caches of pods with two indices, and of nodes if asked for."""
    caches = Caches(connection, namespaces=[namespace] if namespace else ())
    caches.add(
        POD,
        indices={
            "node": lambda pod: [pod.spec.nodeName],
            "owner": lambda pod: [owner.uid for owner in pod.metadata.ownerReferences],
        },
    )
    if nodes:
        caches.add(NODE)
    return caches


async def follow(connection: Connection, namespace: str, nodes: bool, events: int) -> Result:
    started, cpu = time.monotonic(), time.process_time()
    caches, count = make_caches(connection, namespace, nodes), Count(events)
    pods, meter, controller = caches.store(POD), StallMeter(period=0.02), Controller("idle", do_nothing)
    pods.subscribe(count)
    controller.watch(pods, lambda pod: [key_of(pod)])
    running = [asyncio.create_task(source.run()) for _, source in caches.reflectors]
    running += [asyncio.create_task(meter.run()), asyncio.create_task(controller.run())]
    for _, store in caches.stores:
        await store.wait_synced()
    synced = time.monotonic()
    collector.freeze()
    print("synced", flush=True)
    await count.done.wait()
    ended = time.monotonic()
    result = Result(
        objects=sum(len(store) for _, store in caches.stores),
        changes_seen=count.seen,
        sync_s=synced - started,
        events_s=ended - synced,
        cpu_s=time.process_time() - cpu,
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        worst_stall_ms=meter.worst * 1000,
    )
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return result


async def do_nothing(_key: Key) -> None:
    return


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--namespace", default="")
    parser.add_argument("--nodes", action="store_true")
    parser.add_argument("--events", type=int, required=True)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    connection = Connection(HttpTransport(options.server) if options.server else connect(options.kubeconfig))
    result = await follow(connection, options.namespace, options.nodes, options.events)
    print(msgspec.json.encode(result).decode(), flush=True)
    await connection.close()


if __name__ == "__main__":
    collector.configure()  # as the operator does
    asyncio.run(main())
