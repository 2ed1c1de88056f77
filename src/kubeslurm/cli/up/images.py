"""The images of kubeslurm: what each is built from, and how they get into a local cluster."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from kubeslurm.cli.up import image_cache
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.images.builder import BuildSpec
from kubeslurm.local.images.store import ImageRef
from kubeslurm.local.sources import SOURCES


class ImageGroup(msgspec.Struct, frozen=True):
    """Images of one Containerfile; their tag is a hash of everything that they are built from."""

    names: tuple[str, ...]
    context: Path
    containerfile: Path
    tag: str
    targets: bool = True  # each image is the build target of its name

    def specs(self) -> list[BuildSpec]:
        """One build for each image; they share layers, so the first should be built before the others."""
        return [
            BuildSpec(name, self.tag, self.context, name if self.targets else None, containerfile=self.containerfile)
            for name in self.names
        ]


def groups() -> tuple[ImageGroup, ...]:
    """All images, the slowest to build first."""
    return (slurm_images(), _operator_images(), _mariadb_image())


def slurm_images() -> ImageGroup:
    """The images of the Slurm daemons."""
    folder = SOURCES / "images" / "slurm"
    names = ("slurmctld", "login", "slurmd", "slurmrestd", "slurmdbd")
    return ImageGroup(names, folder, folder / "Containerfile", _tag(folder))


def _operator_images() -> ImageGroup:
    folder = SOURCES / "images" / "operator"
    python = (SOURCES / name for name in ("src", "pyproject.toml", "requirements.lock"))
    names = ("slurm-operator", "slurm-operator-webhook")
    return ImageGroup(names, SOURCES, folder / "Containerfile", _tag(folder, *python))


def _mariadb_image() -> ImageGroup:
    folder = SOURCES / "images" / "mariadb"
    return ImageGroup(("mariadb",), folder, folder / "Containerfile", _tag(folder), targets=False)


def build(selected: tuple[ImageGroup, ...], *, tasks: Tasks, progress: Progress) -> dict[str, str]:
    """Build the images that the store lacks; returns the tag of every image by its name."""
    stored = {str(image) for image in store.list_images()}
    missing = [
        [spec for spec in group.specs() if str(ImageRef(spec.name, spec.tag)) not in stored] for group in selected
    ]
    first = [specs[0] for specs in missing if specs]
    others = [spec for specs in missing for spec in specs[1:]]
    for batch in (first, others):
        tasks.run_parallel(*(partial(builder.build, spec, tasks=tasks, progress=progress) for spec in batch))
    return {name: group.tag for group in selected for name in group.names}


def push(tags: dict[str, str], cluster: Cluster) -> None:
    """Put images into the cluster's registry, from the image cache if it has them."""
    stored = {str(image): image for image in store.list_images()}
    images = [ImageRef(name, tag) for name, tag in tags.items()]
    images = [stored.get(str(image), image) for image in images]
    uncached = [image for image in images if not image_cache.restore(image, cluster.home.registry)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        digests = list(pool.map(lambda image: store.push(image, cluster.registry, ca=cluster.ca), uncached))
    for image, digest in zip(uncached, digests, strict=True):
        image_cache.save(image, digest, cluster.home.registry)
    if uncached:
        image_cache.prune(stored.values())


def _tag(*inputs: Path) -> str:
    return cache.digest(*inputs)[:12]
