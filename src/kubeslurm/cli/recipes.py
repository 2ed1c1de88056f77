"""The images of the product: what each is built from, and how it gets into a local cluster."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from kubeslurm.local import cache, images
from kubeslurm.local.cluster import Cluster
from kubeslurm.local.progress import Progress
from kubeslurm.local.sources import SOURCES
from kubeslurm.local.tasks import Tasks


class Part(msgspec.Struct, frozen=True):
    """Images of one Containerfile; their tag is a hash of everything they are made from."""

    names: tuple[str, ...]
    context: Path
    containerfile: Path
    tag: str


def parts() -> tuple[Part, ...]:
    """All images, those of one Containerfile together because they share layers."""
    slurm, operator = SOURCES / "images/slurm", SOURCES / "images/operator"
    python = tuple(SOURCES / name for name in ("src", "pyproject.toml", "requirements.lock"))
    return (
        Part(("slurmctld", "slurmd", "slurmrestd"), slurm, slurm / "Containerfile", _tag(slurm)),
        Part(
            ("slurm-operator", "slurm-operator-webhook"), SOURCES, operator / "Containerfile", _tag(operator, *python)
        ),
    )


def build(progress: Progress) -> dict[str, str]:
    """Builds what the store lacks; the tag of every image by its name."""
    all_parts = parts()
    present = {(image.name, image.tag) for image in images.list()}
    missing = [part for part in all_parts if any((name, part.tag) not in present for name in part.names)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        for job in [pool.submit(_build, part, progress) for part in missing]:
            job.result()
    return {name: part.tag for part in all_parts for name in part.names}


def push(tags: dict[str, str], cluster: Cluster) -> None:
    """Puts the images into the cluster's registry, as far as it lacks them."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        refs = [f"localhost/{name}:{tag}" for name, tag in tags.items()]
        list(pool.map(lambda ref: images.push(ref, cluster.registry, ca=cluster.ca), refs))


def _build(part: Part, progress: Progress) -> None:
    for name in part.names:
        recipe = images.Recipe(name, part.tag, part.context, target=name, containerfile=part.containerfile)
        images.make(recipe, tasks=Tasks(), progress=progress)


def _tag(*inputs: Path) -> str:
    return cache.digest(*inputs)[:12]
