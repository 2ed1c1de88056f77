"""Builds what clusters run on, once, into the user's cache: the Kubernetes binary, the node root, pause and kwok."""

import platform
from functools import partial
from pathlib import Path

from kubeslurm.local.cluster.state import Artifacts
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache, golang
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.images.builder import BuildSpec
from kubeslurm.local.sources import SOURCES

MODULES, IMAGES = SOURCES / "local", SOURCES / "images"


def prepare(*, progress: Progress, kwok: bool = False) -> Artifacts:
    """Build in parallel what the cache lacks, and return where everything is."""
    if not (MODULES / "kubernetes/go.mod").is_file():
        raise LocalError("The sources of the local cluster are missing.", "Run kubeslurm from a clone: `make up`.")
    found, tasks = entries(kwok=kwok), Tasks()
    makers = {"kubernetes": _kubernetes, "kwok": _kwok, "node": _node, "pause": _pause}

    def fill(*names: str) -> None:
        for name in names:
            if name in found:
                found[name].fill(partial(makers[name], tasks=tasks, progress=progress), notify=progress.print)

    tasks.run_parallel(partial(fill, "kubernetes", "kwok"), partial(fill, "node", "pause"))
    return Artifacts(
        kubernetes=found["kubernetes"].path / "kubernetes",
        node_root=found["node"].path / "root",
        pause=found["pause"].path / "pause.tar",
        kwok=found["kwok"].path if kwok else None,
    )


def entries(*, kwok: bool = False) -> dict[str, cache.Entry]:
    """The cache entries for the sources as they are now."""
    flags = (*golang.FLAGS, golang.LINK, platform.machine())
    modules = ("kubernetes", "kwok") if kwok else ("kubernetes",)
    found = {name: cache.Entry(name, cache.digest(MODULES / name, *flags)) for name in modules}
    for name in ("node", "pause"):
        found[name] = cache.Entry(name, cache.digest(IMAGES / name, builder.base_key()))
    return found


def _kubernetes(folder: Path, tasks: Tasks, progress: Progress) -> None:
    golang.build(MODULES / "kubernetes", ".", folder / "kubernetes", tasks=tasks, progress=progress)


def _kwok(folder: Path, tasks: Tasks, progress: Progress) -> None:
    module = MODULES / "kwok"
    golang.build(module, "sigs.k8s.io/kwok/cmd/kwok", folder / "kwok", tasks=tasks, progress=progress)
    sources = ["go", "list", "-m", "-f={{.Dir}}", "sigs.k8s.io/kwok"]
    stages = Path(tasks.run(sources, cwd=module, env=golang.ENVIRONMENT)[-1], "kustomize/stage")
    parts = ("pod/fast", "node/fast", "node/heartbeat-with-lease")
    files = [path for part in parts for path in sorted((stages / part).glob("*.yaml"))]
    texts = [path.read_text() for path in files if path.name != "kustomization.yaml"]
    (folder / "stages.yaml").write_text("\n---\n".join(texts))


def _node(folder: Path, tasks: Tasks, progress: Progress) -> None:
    image = builder.build(BuildSpec("node", "latest", IMAGES / "node"), tasks=tasks, progress=progress)
    with progress.step("unpack node image"):
        (folder / "root").mkdir()
        store.extract(image, folder / "root", tasks=tasks)


def _pause(folder: Path, tasks: Tasks, progress: Progress) -> None:
    image = builder.build(BuildSpec("pause", "1", IMAGES / "pause"), tasks=tasks, progress=progress)
    store.archive(image, folder / "pause.tar", tasks=tasks)
