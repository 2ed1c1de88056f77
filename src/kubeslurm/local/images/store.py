"""The image store: lists, unpacks and pushes the images that were built on this machine."""

import json
import tempfile
from pathlib import Path

import msgspec

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache
from kubeslurm.local.host.tasks import CommandError, Tasks
from kubeslurm.local.images import buildah

BASE = "localhost/debian:forky-slim"  # buildah resolves the short name debian:forky-slim to it


class ImageRef(msgspec.Struct, frozen=True):
    """An image in our store: `localhost/NAME:TAG`, the same name that pods use."""

    name: str
    tag: str
    id: str = ""
    created: str = ""

    def __str__(self) -> str:
        return f"localhost/{self.name}:{self.tag}"


def list_images() -> list[ImageRef]:
    """Every named image, newest first. Reads the index of the store: `buildah images` also computes every size."""
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


def image_id(image: str, tasks: Tasks) -> str:
    """The id of a named image; empty if the store does not have it."""
    try:
        return buildah.run(tasks, "inspect", "--type=image", "--format={{.FromImageID}}", image)[-1]
    except CommandError:
        return ""


def extract(image: ImageRef, target: Path, *, tasks: Tasks) -> None:
    """Copy the root file system of an image to `target`."""
    script = """
        c=$(buildah from --pull-never "$1")
        trap 'buildah rm "$c" > /dev/null' EXIT
        cp -a --reflink=auto "$(buildah mount "$c")/." "$2"
    """
    buildah.run_script(tasks, script, str(image), target)
    target.chmod(0o755)


def archive(image: ImageRef, target: Path, *, tasks: Tasks) -> None:
    """Write an image as an OCI archive; containerd imports it under the same name."""
    script = 'exec buildah push -q --signature-policy "$POLICY" "$1" "$2"'
    buildah.run_script(tasks, script, str(image), f"oci-archive:{target}:{image}")


def push(image: ImageRef | str, registry: str, *, ca: Path | None = None) -> str:
    """Push to HOST:PORT and return the digest; layers that the registry already has are not sent."""
    name = str(image).removeprefix("localhost/")
    tasks = Tasks()
    if not image_id(f"localhost/{name}", tasks):
        raise LocalError(f"There is no image localhost/{name}.", "See `kubeslurm local image list`.")
    with tempfile.TemporaryDirectory() as scratch:
        if ca is not None:
            Path(scratch, "ca.crt").write_bytes(ca.read_bytes())
        # Nodes unpack zstd several times faster than gzip.
        options = ["-q", "--compression-format=zstd", "--compression-level=1"]
        options += [f"--digestfile={scratch}/digest", f"--cert-dir={scratch}"]
        script = 'exec buildah push --signature-policy "$POLICY" "$@"'
        try:
            buildah.run_script(tasks, script, *options, f"localhost/{name}", f"docker://{registry}/{name}")
        except CommandError as error:
            message = f"The image {name} could not be pushed to {registry}."
            raise error.as_error(message, "Check that the cluster is up: `kubeslurm local status`.") from error
        return Path(scratch, "digest").read_text().strip()
