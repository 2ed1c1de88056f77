"""What an image build borrows from this machine: apt sources, proxies, CA certificates and pip settings.

They are laid over empty files while the build runs and are in no image afterwards.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kubeslurm.local.errors import LocalError

SUITES = ("forky", "sid")  # sid too: a package that forky misses for a while (sssd at times) then comes from there
CA = "/usr/local/share/build/ca.crt"
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "timeout", "proxy", "retries")


def write(folder: Path) -> list[str]:
    """Write the settings to `folder` and return the buildah options that lay them over the image's files."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # a package index may come with a password
    contents = {
        "/etc/apt/sources.list.d/debian.sources": apt_sources(debian_mirror()),
        "/etc/apt/apt.conf.d/zz-build": apt_options(_output("apt-config", "dump")),
        "/etc/pip.conf": pip_settings(_output("python3", "-m", "pip", "config", "list"), os.environ),
        CA: _certificates(),
    }
    for place, text in contents.items():
        (folder / Path(place).name).write_text(text)
    return [f"--volume={folder / Path(place).name}:{place}:ro" for place in contents]


def debian_mirror(folder: Path = Path("/etc/apt")) -> str:
    """The Debian mirror that this machine itself installs from."""
    files = [*sorted((folder / "sources.list.d").glob("*")), folder / "sources.list"]
    texts = [file.read_text() for file in files if file.suffix in (".sources", ".list") and file.is_file()]
    lines = [line for text in texts for line in text.splitlines() if re.match(r"(URIs:|deb\s)", line)]
    if found := next((word for line in lines for word in line.split() if re.search(r"://.*/debian/?$", word)), None):
        return found.rstrip("/")
    raise LocalError(
        "No Debian mirror is named in this machine's apt sources, and node images are made of Debian packages.",
        "Run on a Debian machine, or use a cluster that you already have.",
    )


def apt_sources(mirror: str, suites: tuple[str, ...] = SUITES) -> str:
    """Sources in apt's own form. Forky's first release file may be past its date on a mirror: that is accepted."""
    return (
        f"Types: deb\nURIs: {mirror}\nSuites: {' '.join(suites)}\nComponents: main\nCheck-Valid-Until: no\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def apt_options(machine: str) -> str:
    """Prefer forky, and go through the proxy that the machine's own apt uses."""
    proxies = re.findall(r'^Acquire::https?::(?:Proxy|proxy).* "[^"]+";$', machine, re.MULTILINE)
    ours = [f'APT::Default-Release "{SUITES[0]}";', 'Acquire::Languages "none";', f'Acquire::https::CAInfo "{CA}";']
    return "\n".join([*ours, *proxies]) + "\n"


def pip_settings(machine: str, environment: Mapping[str, str]) -> str:
    """The machine's package index, if it has one of its own, and its certificates."""
    lines = [f"cert = {CA}"]
    found = dict(re.findall(r"^[^=]*?\.([a-z-]+)='(.*)'$", machine, re.MULTILINE))
    for key in PIP_KEYS:
        value = environment.get("PIP_" + key.upper().replace("-", "_"), found.get(key, ""))
        lines += [f"{key} = {value}"] if value else []
    return "[global]\n" + "\n".join(lines) + "\n"


def _certificates() -> str:
    for place in (os.environ.get("SSL_CERT_FILE", ""), "/etc/ssl/certs/ca-certificates.crt"):
        if place and Path(place).is_file():
            return Path(place).read_text()
    return ""


def _output(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""  # a machine without apt-config or pip has no settings to lend
