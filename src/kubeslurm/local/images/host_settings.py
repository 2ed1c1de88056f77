"""Settings of this machine that an image build uses: apt sources, proxies, CA certificates and pip settings.

They are mounted over empty files while the build runs, and are not part of any image.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kubeslurm.local.errors import LocalError

SUITES = ("forky", "sid")  # sid has packages that forky lacks for a while (sssd at times)
CA = "/usr/local/share/build/ca.crt"
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "timeout", "proxy", "retries")


def write(folder: Path) -> list[str]:
    """Write the settings to `folder`, and return the buildah options that mount them over the files of the image."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # the URL of a package index may contain a password
    contents = {
        "/etc/apt/sources.list.d/debian.sources": apt_sources(debian_mirror()),
        "/etc/apt/apt.conf.d/zz-build": apt_options(_output("apt-config", "dump")),
        "/etc/pip.conf": pip_settings(_output("python3", "-m", "pip", "config", "list"), os.environ),
        CA: _certificates(),
    }
    for path, text in contents.items():
        (folder / Path(path).name).write_text(text)
    return [f"--volume={folder / Path(path).name}:{path}:ro" for path in contents]


def debian_mirror(folder: Path = Path("/etc/apt")) -> str:
    """The Debian mirror in this machine's own apt sources."""
    files = [*sorted((folder / "sources.list.d").glob("*")), folder / "sources.list"]
    texts = [file.read_text() for file in files if file.suffix in (".sources", ".list") and file.is_file()]
    lines = [line for text in texts for line in text.splitlines() if re.match(r"(URIs:|deb\s)", line)]
    if found := next((word for line in lines for word in line.split() if re.search(r"://.*/debian/?$", word)), None):
        return found.rstrip("/")
    raise LocalError(
        "This machine's apt sources name no Debian mirror, and images are made of Debian packages.",
        "Use a Debian machine, or an existing cluster: `kubeslurm up --context NAME`.",
    )


def apt_sources(mirror: str, suites: tuple[str, ...] = SUITES) -> str:
    """apt sources in deb822 format. Release files of forky may have expired on a mirror; they are accepted."""
    return (
        f"Types: deb\nURIs: {mirror}\nSuites: {' '.join(suites)}\nComponents: main\nCheck-Valid-Until: no\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def apt_options(machine: str) -> str:
    """apt options that prefer forky and use the proxies of this machine's apt."""
    proxies = re.findall(r'^Acquire::https?::(?:Proxy|proxy).* "[^"]+";$', machine, re.MULTILINE)
    options = [f'APT::Default-Release "{SUITES[0]}";', 'Acquire::Languages "none";', f'Acquire::https::CAInfo "{CA}";']
    return "\n".join([*options, *proxies]) + "\n"


def pip_settings(machine: str, environment: Mapping[str, str]) -> str:
    """A pip.conf with this machine's package index, if one is configured, and its CA certificates."""
    lines = [f"cert = {CA}"]
    found = dict(re.findall(r"^[^=]*?\.([a-z-]+)='(.*)'$", machine, re.MULTILINE))
    for key in PIP_KEYS:
        value = environment.get("PIP_" + key.upper().replace("-", "_"), found.get(key, ""))
        lines += [f"{key} = {value}"] if value else []
    return "[global]\n" + "\n".join(lines) + "\n"


def _certificates() -> str:
    for path in (os.environ.get("SSL_CERT_FILE", ""), "/etc/ssl/certs/ca-certificates.crt"):
        if path and Path(path).is_file():
            return Path(path).read_text()
    return ""


def _output(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""  # without apt-config or pip there are no settings
