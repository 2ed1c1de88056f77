"""ssh access to the login pods for the user of this machine: a key pair and an ssh configuration."""

import base64
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.releases import LOGINSET, SLURM_NAMESPACE
from kubeslurm.local.cluster import state
from kubeslurm.local.host import files

HOST = "login"
KEY = "id_ed25519"
CONFIG = "config"
KNOWN_HOSTS = "known_hosts"
TIMEOUT = 60.0


class SshAccess(msgspec.Struct, frozen=True):
    """The directory with the ssh files for one cluster; `address` serves its NodePorts, if they can be reached."""

    path: Path
    address: str = ""

    def authorized_keys(self) -> str:
        """Public keys that may log in as root: our own, made at the first call, and those of the user."""
        own = sorted(path.read_text().strip() for path in (Path.home() / ".ssh").glob("id_*.pub"))
        return "\n".join([self._public_key(), *own])

    def write_config(self, access: Access) -> str:
        """Write the ssh configuration for the login pods, and return the start of a command that logs in."""
        service = access.get_json("get", "service", LOGINSET, f"--namespace={SLURM_NAMESPACE}")
        secret = access.get_json("get", "secret", names.login_host_keys(LOGINSET), f"--namespace={SLURM_NAMESPACE}")
        files.write(self.path / KNOWN_HOSTS, known_hosts(secret).encode())
        files.write(self.path / CONFIG, config(self.path, _route(self.address, service, access)).encode())
        return f"ssh -F {_shell_path(self.path / CONFIG)} {HOST}"

    def works(self) -> bool:
        """Whether a login succeeds and Slurm answers there; assumed if ssh is not installed."""
        if shutil.which("ssh") is None:
            return True
        argv = ["ssh", "-F", str(self.path / CONFIG), "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", HOST, "sinfo"]
        try:
            return subprocess.run(argv, capture_output=True, timeout=TIMEOUT, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _public_key(self) -> str:
        private, public = self.path / KEY, self.path / f"{KEY}.pub"
        if not (private.exists() and public.exists()):
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            key = Ed25519PrivateKey.generate()
            files.write(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
            line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" kubeslurm\n"
            files.write(public, line, 0o644)
        return public.read_text().strip()


def for_context(context: str) -> SshAccess:
    """ssh access to a cluster that is known only by its kubeconfig context."""
    return SshAccess(directory(context) / "login")


def directory(context: str) -> Path:
    """Where files about a cluster are kept that is known only by its kubeconfig context."""
    return state.root().parent / "contexts" / re.sub(r"[^\w.@:-]", "_", context)


def known_hosts(secret: Tree) -> str:
    """A known_hosts file with the host keys of the login pods."""
    keys = [base64.b64decode(value).decode() for file, value in sorted(secret["data"].items()) if file.endswith(".pub")]
    return "".join(f"{LOGINSET} {key.strip()}\n" for key in keys)


def config(path: Path, route: str) -> str:
    """An ssh_config that trusts only the operator's host keys, never prompts, and does not use the user's files."""
    return (
        f"Host {HOST}\n"
        f"  {route}\n"
        "  User root\n"
        f'  IdentityFile "{path / KEY}"\n'
        "  IdentitiesOnly yes\n"
        f"  HostKeyAlias {LOGINSET}\n"
        f'  UserKnownHostsFile "{path / KNOWN_HOSTS}"\n'
        "  StrictHostKeyChecking yes\n"
    )


def _route(address: str, service: Tree, access: Access) -> str:
    """The ssh options to reach a login pod: its NodePort, or `kubectl exec` if only the API server can be reached."""
    port = service["spec"]["ports"][0].get("nodePort")
    if address and port:
        return f"HostName {address}\n  Port {port}"
    target = (f"--namespace={SLURM_NAMESPACE}", f"deployment/{LOGINSET}", f"--container={names.LOGIN}")
    # Without -e, sshd exits at once if there is no syslog.
    sshd = ("/usr/sbin/sshd", "-i", "-e", "-o", "LogLevel=QUIET")
    command = shlex.join([*access.kubectl, "exec", "--stdin", *target, "--", *sshd])
    return f"ProxyCommand {command.replace('%', '%%')}"


def _shell_path(path: Path) -> str:
    """A path quoted for a shell, relative to `~` if possible."""
    home = Path.home()
    if path.is_relative_to(home):
        return f"~/{shlex.quote(str(path.relative_to(home)))}"
    return shlex.quote(str(path))
