"""Builds images from ordinary Containerfiles, and the Debian base image that they start from."""

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
from kubeslurm.local.host.tasks import CommandError, Tasks
from kubeslurm.local.images import buildah, host_settings, store
from kubeslurm.local.images.store import ImageRef
from kubeslurm.local.sources import SOURCES

REQUIRED_SPACE = 2**30
KEPT_TAGS = 4  # of one name; older ones are deleted
UNREACHABLE = ("Temporary failure resolving", "Could not connect", "Failed to fetch")


class BuildSpec(msgspec.Struct, frozen=True):
    """What to build: a Containerfile, its context, and the name and tag of the image."""

    name: str
    tag: str
    context: Path
    target: str | None = None
    containerfile: Path | None = None

    @property
    def file(self) -> Path:
        return self.containerfile or self.context / "Containerfile"

    def options(self) -> list[str]:
        """Options of `buildah build`."""
        target = [f"--target={self.target}"] if self.target else []
        return [f"--tag=localhost/{self.name}:{self.tag}", f"--file={self.file}", *target]


def build(spec: BuildSpec, *, tasks: Tasks, progress: Progress) -> ImageRef:
    """Build an image and tag it `localhost/NAME:TAG`."""
    if not spec.file.is_file():
        raise LocalError(f"There is no {spec.file}.", "Name the directory that holds the Containerfile.")
    if not spec.context.is_dir():
        raise LocalError(f"There is no directory {spec.context}.", "Name the build context, an existing directory.")
    ensure_base(tasks, progress)
    with progress.step(f"build image {spec.name}") as step, tempfile.TemporaryDirectory() as scratch:
        options = ["--pull-never", "--layers", "--format=oci", f"--iidfile={scratch}/id", *spec.options()]
        options += host_settings.write(Path(scratch) / "settings")
        try:
            buildah.run(tasks, "bud", *options, spec.context, on_line=lambda line: _show_step(line, step))
        except CommandError as error:
            raise _explain(spec.name, error) from error
        image = Path(scratch, "id").read_text().strip().removeprefix("sha256:")
    _remove_older_tags(spec, tasks)
    return ImageRef(spec.name, spec.tag, image)


def _show_step(line: str, step: Step) -> None:
    # As a note, not as done/total: one RUN takes longer than all other steps, so an estimate would be wrong.
    if found := re.search(r"STEP (\d+)/(\d+): (\w+)", line):
        step.update(note=f"step {found[1]} of {found[2]}, {found[3]}")


def _explain(name: str, error: CommandError) -> LocalError:
    """The error message for a failed build."""
    text = "\n".join(error.output)
    if found := re.search(r"Unable to locate package (\S+)|Package '?([^\s']+)'? has no installation candidate", text):
        return LocalError(
            f"The image {name} needs the Debian package {found[1] or found[2]}, which the mirror does not have"
            " at present.",
            "Debian forky changes daily: try again tomorrow, or name another package in the Containerfile.",
        )
    if shutil.disk_usage(cache.folder("tmp")).free < REQUIRED_SPACE:  # apt does not always report a full disk
        remedy = f"Free some space below {cache.directory()} and run the same command again."
        return LocalError(f"The disk is full: the image {name} cannot be built.", remedy)
    remedy = "Run the same command again."
    if any(message in text for message in UNREACHABLE):
        remedy = "Check that this machine's apt works (`apt-get update`) and run the same command again."
    return error.as_error(f"Building the image {name} failed.", remedy)


def _remove_older_tags(spec: BuildSpec, tasks: Tasks) -> None:
    """Keep the newest tags of a name. Removes at most two at a time, so that no build takes much longer."""
    others = [image for image in store.list_images() if image.name == spec.name and image.tag != spec.tag]
    old = [str(image) for image in others[KEPT_TAGS - 1 :]]
    if old:
        with suppress(CommandError):  # a container of another process may use it
            buildah.run(tasks, "rmi", *old[-2:])


def base_key() -> str:
    """A hash of what the base image is made from."""
    return cache.digest(SOURCES / "images" / "base", platform.machine())


def ensure_base(tasks: Tasks, progress: Progress) -> None:
    """Make debian:forky-slim from Debian packages unless the store has it. No public registry is used."""
    tag = f"localhost/base:{base_key()}"
    if store.image_id(tag, tasks):
        return
    with cache.lock("base", on_wait=lambda: progress.print("another kubeslurm makes the base image; waiting for it")):
        if store.image_id(tag, tasks):
            return
        tmp = tempfile.TemporaryDirectory(dir=cache.folder("tmp"))
        with progress.step("make base image") as step, tmp as scratch:
            step.update(note="Debian forky")
            sources, root = Path(scratch) / "debian.sources", Path(scratch) / "base.tar"
            suites = host_settings.SUITES[:1]
            sources.write_text(host_settings.apt_sources(host_settings.debian_mirror(), suites=suites))
            try:
                tasks.run([SOURCES / "images" / "base" / "build", sources, root], env={"TMPDIR": scratch})
                commit = 'c=$(buildah from scratch); buildah add -q "$c" "$1" /; buildah commit -q --rm "$c" "$2"'
                buildah.run_script(tasks, f'{commit}; buildah tag "$2" "$3"', root, store.BASE, tag)
            except CommandError as error:
                raise _explain("base", error) from error
