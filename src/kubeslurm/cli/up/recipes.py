"""The images of the product: what each is built from, and how it gets into a local cluster."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from kubeslurm.cli.up import image_cache
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import build as images
from kubeslurm.local.sources import SOURCES


class Part(msgspec.Struct, frozen=True):
    """Images of one Containerfile; their tag is a hash of everything they are made from."""

    names: tuple[str, ...]
    context: Path
    containerfile: Path
    tag: str
    staged: bool = True

    def recipes(self) -> list[images.Recipe]:
        """One for each image; they share layers, so the first is best built before the others."""
        return [
            images.Recipe(name, self.tag, self.context, name if self.staged else None, containerfile=self.containerfile)
            for name in self.names
        ]


def parts() -> tuple[Part, ...]:
    """All images of the product, the largest first."""
    slurm, operator, mariadb = (SOURCES / "images" / name for name in ("slurm", "operator", "mariadb"))
    python = tuple(SOURCES / name for name in ("src", "pyproject.toml", "requirements.lock"))
    daemons = ("slurmctld", "login", "slurmd", "slurmrestd", "slurmdbd")
    operators = ("slurm-operator", "slurm-operator-webhook")
    return (
        Part(daemons, slurm, slurm / "Containerfile", _tag(slurm)),
        Part(operators, SOURCES, operator / "Containerfile", _tag(operator, *python)),
        Part(("mariadb",), mariadb, mariadb / "Containerfile", _tag(mariadb), staged=False),
    )


def build(progress: Progress, tasks: Tasks | None = None) -> dict[str, str]:
    """Builds what the store lacks; the tag of every image by its name."""
    tasks, all_parts = tasks or Tasks(), parts()
    missing = _missing([recipe for part in all_parts for recipe in part.recipes()])
    wanted = [[recipe for recipe in part.recipes() if recipe.name in missing] for part in all_parts]
    first = [recipes[0] for recipes in wanted if recipes]
    others = [recipe for recipes in wanted for recipe in recipes[1:]]
    for some in (first, others):
        tasks.together(*(partial(images.make, recipe, tasks=tasks, progress=progress) for recipe in some))
    return {name: part.tag for part in all_parts for name in part.names}


def push(tags: dict[str, str], cluster: Cluster) -> None:
    """Puts the images into the cluster's registry, as far as it lacks them; the second time it only takes links."""
    stored = {str(image): image for image in images.list()}
    wanted = [images.ImageRef(name, tag) for name, tag in tags.items()]
    wanted = [stored.get(str(image), image) for image in wanted]
    lacking = [image for image in wanted if not image_cache.put(image, cluster.home.registry)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        digests = list(pool.map(lambda image: images.push(image, cluster.registry, ca=cluster.ca), lacking))
    for image, digest in zip(lacking, digests, strict=True):
        image_cache.keep(image, digest, cluster.home.registry)
    if lacking:
        image_cache.tidy(stored.values())


def _missing(recipes: list[images.Recipe]) -> set[str]:
    """The names that the store lacks."""
    there = {str(image) for image in images.list()}
    return {recipe.name for recipe in recipes if f"localhost/{recipe.name}:{recipe.tag}" not in there}


def _tag(*inputs: Path) -> str:
    return cache.digest(*inputs)[:12]
