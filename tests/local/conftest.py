"""One cluster of three nodes that most tests share, in a separate state directory."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from kubeslurm.local.cluster import nodespec
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.sources import SOURCES
from tests.local.support import Namespace, evidence, wait_for
from tests.support.kubernetes import Kubernetes

GPU = "gpu:count=1,label=tier=fast,taint=gpu=yes:NoSchedule,resource=nvidia.com/gpu=8"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the test's clusters show at the moment of a failure."""
    report = yield
    if report.failed:
        found = {fixture: getattr(item, "funcargs", {}).get(fixture) for fixture in ("cluster", "small")}
        report.sections += [(name, evidence(cluster)) for name, cluster in found.items() if cluster is not None]
    return report


@pytest.fixture(scope="session")
def state_home() -> Iterator[Path]:
    """A state directory for the clusters of tests only; the next run finds what a killed run left."""
    home = Path(tempfile.gettempdir(), f"kubeslurm-{os.environ.get('KUBESLURM_E2E', 'tests')}-{os.getuid()}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        for name in ("shared", "small"):  # left by a run that was killed
            Kubernetes(name).down(purge=True)
        yield home
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(state_home: Path) -> Iterator[Kubernetes]:
    """Two plain nodes, and one with a label, a taint and fake GPUs."""
    spec = builder.BuildSpec("testbox", "1", SOURCES / "images" / "testbox")
    image = builder.build(spec, tasks=Tasks(), progress=Progress())
    shared = Kubernetes("shared")
    shared.up(nodespec.nodes(2, [GPU]))
    try:
        store.push(image, shared.registry, ca=shared.ca)
        yield shared
    finally:
        shared.down(purge=True)


@pytest.fixture
def namespace(cluster: Kubernetes, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace named after the test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    wait_for("a namespace", lambda: cluster.kubectl("apply", "-f", "-", stdin=json.dumps(tree)))
    cluster.kubectl("-n", name, "wait", "--for=create", "serviceaccount/default", "--timeout=300s")
    yield Namespace(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
