"""How the user of this machine gets into a cluster's login pods: a key pair, and a configuration for ssh."""

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
from kubeslurm.cli.up.helm import Access
from kubeslurm.cli.up.releases import LOGINSET, SLURM_NAMESPACE
from kubeslurm.local.cluster import state

HOST = "login"
KEY = "id_ed25519"
CONFIG = "config"
KNOWN_HOSTS = "known_hosts"
PATIENCE = 60.0


class Desk(msgspec.Struct, frozen=True):
    """The directory with ssh's files for one cluster; `address` is where its NodePorts are, if they can be reached."""

    path: Path
    address: str = ""

    def root_keys(self) -> str:
        """Who may log in as root: the key of this desk, made at the first call, and the user's own keys."""
        own = sorted(path.read_text().strip() for path in (Path.home() / ".ssh").glob("id_*.pub"))
        return "\n".join([self._public_key(), *own])

    def open(self, access: Access) -> str:
        """Writes ssh's configuration for the login pods as they are now; the beginning of a command that logs in."""
        service = access.tree("get", "service", LOGINSET, f"--namespace={SLURM_NAMESPACE}")
        secret = access.tree("get", "secret", names.login_host_keys(LOGINSET), f"--namespace={SLURM_NAMESPACE}")
        state.replace(self.path / KNOWN_HOSTS, known_hosts(secret).encode())
        state.replace(self.path / CONFIG, config(self.path, _way(self.address, service, access)).encode())
        return f"ssh -F {_as_typed(self.path / CONFIG)} {HOST}"

    def lets_in(self) -> bool:
        """Whether one gets in and Slurm answers there; taken for granted where there is no ssh to try it with."""
        if shutil.which("ssh") is None:
            return True
        argv = ["ssh", "-F", str(self.path / CONFIG), "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", HOST, "sinfo"]
        try:
            return subprocess.run(argv, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _public_key(self) -> str:
        private, public = self.path / KEY, self.path / f"{KEY}.pub"
        if not (private.exists() and public.exists()):
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            key = Ed25519PrivateKey.generate()
            state.replace(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
            line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" kubeslurm\n"
            state.replace(public, line, 0o644)
        return public.read_text().strip()


def desk_of_context(context: str) -> Desk:
    """For a cluster that is only known by the context of a kubeconfig."""
    return Desk(state.root().parent / "contexts" / re.sub(r"[^\w.@:-]", "_", context) / "login")


def known_hosts(secret: Tree) -> str:
    """The host keys of the login pods under the name that ssh looks them up by."""
    keys = [base64.b64decode(value).decode() for file, value in sorted(secret["data"].items()) if file.endswith(".pub")]
    return "".join(f"{LOGINSET} {key.strip()}\n" for key in keys)


def config(path: Path, way: str) -> str:
    """ssh_config: asks nothing, trusts only the host keys that the operator has made, leaves the user's files alone."""
    return (
        f"Host {HOST}\n"
        f"  {way}\n"
        "  User root\n"
        f'  IdentityFile "{path / KEY}"\n'
        "  IdentitiesOnly yes\n"
        f"  HostKeyAlias {LOGINSET}\n"
        f'  UserKnownHostsFile "{path / KNOWN_HOSTS}"\n'
        "  StrictHostKeyChecking yes\n"
    )


def _way(address: str, service: Tree, access: Access) -> str:
    """By the NodePort, or through the API server, which is all that can be counted on with somebody else's cluster."""
    port = service["spec"]["ports"][0].get("nodePort")
    if address and port:
        return f"HostName {address}\n  Port {port}"
    target = (f"--namespace={SLURM_NAMESPACE}", f"deployment/{LOGINSET}", f"--container={names.LOGIN}")
    # Without -e sshd ends at once where it finds no syslog.
    sshd = ("/usr/sbin/sshd", "-i", "-e", "-o", "LogLevel=QUIET")
    command = shlex.join([*access.kubectl, "exec", "--stdin", *target, "--", *sshd])
    return f"ProxyCommand {command.replace('%', '%%')}"


def _as_typed(path: Path) -> str:
    """A path for a shell; below the home directory a short one."""
    home = Path.home()
    if path.is_relative_to(home):
        return f"~/{shlex.quote(str(path.relative_to(home)))}"
    return shlex.quote(str(path))
