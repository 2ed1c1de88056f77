"""Builds images from ordinary Containerfiles and pushes them to a registry."""

import builtins
import json
import platform
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import Failed, Tasks
from kubeslurm.local.images import buildah, settings
from kubeslurm.local.sources import SOURCES

BASE = "localhost/debian:forky-slim"  # what buildah finds for the short name debian:forky-slim
NEEDED_SPACE = 2**30
KEPT = 4  # tags of one name; older ones make room


class ImageRef(msgspec.Struct, frozen=True):
    """An image in our store: `localhost/NAME:TAG`, the same name that pods use."""

    name: str
    tag: str
    id: str = ""
    created: str = ""

    def __str__(self) -> str:
        return f"localhost/{self.name}:{self.tag}"


class Recipe(msgspec.Struct, frozen=True):
    """What to build: a Containerfile, its context, and the name that the result gets."""

    name: str
    tag: str
    context: Path
    target: str | None = None
    containerfile: Path | None = None

    @property
    def file(self) -> Path:
        return self.containerfile or self.context / "Containerfile"

    def options(self) -> builtins.list[str]:
        """The recipe as buildah takes it."""
        target = [f"--target={self.target}"] if self.target else []
        return [f"--tag=localhost/{self.name}:{self.tag}", f"--file={self.file}", *target]


def build(name: str, *, tag: str, context: Path, progress: Progress, target: str | None = None) -> ImageRef:
    """Build `context`/Containerfile and tag it `localhost/NAME:TAG`."""
    return make(Recipe(name, tag, context, target), tasks=Tasks(), progress=progress)


def make(recipe: Recipe, *, tasks: Tasks, progress: Progress) -> ImageRef:
    """Build as one of several tasks."""
    if not recipe.file.is_file():
        raise LocalError(f"There is no {recipe.file}.", "Name the directory that holds the Containerfile.")
    if not recipe.context.is_dir():
        raise LocalError(f"There is no directory {recipe.context}.", "Name the one that the build may copy from.")
    ensure_base(tasks, progress)
    with progress.step(f"build image {recipe.name}") as step, tempfile.TemporaryDirectory() as scratch:
        words = ["--pull-never", "--layers", "--format=oci", f"--iidfile={scratch}/id", *recipe.options()]
        words += settings.write(Path(scratch) / "settings")
        try:
            buildah.call(tasks, "bud", *words, recipe.context, on_line=lambda line: _follow(line, step))
        except Failed as failure:
            raise _explained(recipe.name, failure) from failure
        image = Path(scratch, "id").read_text().strip().removeprefix("sha256:")
    _forget_older(recipe, tasks)
    return ImageRef(recipe.name, recipe.tag, image)


def _follow(line: str, step: Step) -> None:
    # A note, not a count: one RUN takes longer than all other steps together, so their pace tells nothing.
    if found := re.search(r"STEP (\d+)/(\d+): (\w+)", line):
        step.update(note=f"step {found[1]} of {found[2]}, {found[3]}")


def _explained(name: str, failure: Failed) -> LocalError:
    text = "\n".join(failure.output)
    if found := re.search(r"Unable to locate package (\S+)|Package '?([^\s']+)'? has no installation candidate", text):
        return LocalError(
            f"The image {name} needs the Debian package {found[1] or found[2]}, which the mirror does not have"
            " at present.",
            "Debian forky moves: try again in a day, or name another package in the Containerfile.",
        )
    if shutil.disk_usage(cache.folder("tmp")).free < NEEDED_SPACE:  # apt does not always say so
        remedy = f"Free some space below {cache.directory()} and run the same command again."
        return LocalError(f"The disk is full: the image {name} cannot be built.", remedy)
    again = "Run the same command again."
    if any(sign in text for sign in ("Temporary failure resolving", "Could not connect", "Failed to fetch")):
        again = "Check that this machine's apt works (`apt-get update`) and run the same command again."
    return failure.as_error(f"Building the image {name} failed.", again)


def _forget_older(recipe: Recipe, tasks: Tasks) -> None:
    """Keep the newest few tags of a name; at most two go at a time, so that no build waits long for it."""
    others = [image for image in list() if image.name == recipe.name and image.tag != recipe.tag]
    old = [str(image) for image in others[KEPT - 1 :]]
    if old:
        with suppress(Failed):  # a container of another process may still stand on it
            buildah.call(tasks, "rmi", *old[-2:])


def base_key() -> str:
    """Changes when the base image is made in another way."""
    return cache.digest(SOURCES / "images" / "base", platform.machine())


def ensure_base(tasks: Tasks, progress: Progress) -> None:
    """Make debian:forky-slim from Debian packages unless the store has it: there is no public registry to ask."""
    mark = f"localhost/base:{base_key()}"
    if _identity(mark, tasks):
        return
    with cache.lock("base", waiting=lambda: progress.say("the base image is being made already; waiting for it")):
        if _identity(mark, tasks):
            return
        tmp = tempfile.TemporaryDirectory(dir=cache.folder("tmp"))
        with progress.step("make base image") as step, tmp as scratch:
            step.update(note="Debian forky")
            sources, root = Path(scratch) / "debian.sources", Path(scratch) / "base.tar"
            sources.write_text(settings.apt_sources(settings.debian_mirror(), suites=settings.SUITES[:1]))
            try:
                tasks.run([SOURCES / "images" / "base" / "build", sources, root], env={"TMPDIR": scratch})
                commit = 'c=$(buildah from scratch); buildah add -q "$c" "$1" /; buildah commit -q --rm "$c" "$2"'
                buildah.script(tasks, f'{commit}; buildah tag "$2" "$3"', root, BASE, mark)
            except Failed as failure:
                raise _explained("base", failure) from failure


def _identity(image: str, tasks: Tasks) -> str:
    """The id of a named image, or nothing when the store does not have it."""
    try:
        return buildah.call(tasks, "inspect", "--type=image", "--format={{.FromImageID}}", image)[-1]
    except Failed:
        return ""


def extract(image: ImageRef, target: Path, *, tasks: Tasks) -> None:
    """Copy the image's whole directory tree to `target`."""
    text = """
        c=$(buildah from --pull-never "$1")
        trap 'buildah rm "$c" > /dev/null' EXIT
        cp -a --reflink=auto "$(buildah mount "$c")/." "$2"
    """
    buildah.script(tasks, text, str(image), target)
    target.chmod(0o755)


def archive(image: ImageRef, target: Path, *, tasks: Tasks) -> None:
    """Write the image as an OCI archive that containerd imports under its own name."""
    push = 'exec buildah push -q --signature-policy "$POLICY" "$1" "$2"'
    buildah.script(tasks, push, str(image), f"oci-archive:{target}:{image}")


def push(ref: ImageRef | str, registry: str, *, ca: Path | None = None) -> str:
    """Push to HOST:PORT and return the digest; nothing is sent that the registry already has."""
    image = str(ref).removeprefix("localhost/")
    tasks = Tasks()
    if not _identity(f"localhost/{image}", tasks):
        raise LocalError(f"There is no image localhost/{image}.", "See `kubeslurm local image list`.")
    with tempfile.TemporaryDirectory() as scratch:
        if ca is not None:
            Path(scratch, "ca.crt").write_bytes(ca.read_bytes())
        # Nodes unpack zstd several times faster than gzip. Whole layers that the registry has are not sent again.
        words = ["-q", "--compression-format=zstd", "--compression-level=1"]
        words += [f"--digestfile={scratch}/digest", f"--cert-dir={scratch}"]
        text = 'exec buildah push --signature-policy "$POLICY" "$@"'
        try:
            buildah.script(tasks, text, *words, f"localhost/{image}", f"docker://{registry}/{image}")
        except Failed as failure:
            message = f"The image {image} could not be pushed to {registry}."
            raise failure.as_error(message, "Check that the cluster is up: `kubeslurm local status`.") from failure
        return Path(scratch, "digest").read_text().strip()


def list() -> builtins.list[ImageRef]:  # noqa: A001
    """Every named image, newest first, from the store's own index: buildah would measure each layer first."""
    index = cache.directory() / "storage/overlay-images/images.json"
    stored = json.loads(index.read_bytes()) if index.exists() else []
    newest = sorted(stored, key=lambda image: image["created"].rstrip("Z"), reverse=True)
    named = [(name.rpartition(":"), image) for image in newest for name in image.get("names") or []]
    found = [
        ImageRef(name.removeprefix("localhost/"), tag, image["id"], image["created"])
        for (name, _, tag), image in named
        if name.startswith("localhost/")
    ]
    return [image for image in found if str(image) != BASE and image.name != "base"]
