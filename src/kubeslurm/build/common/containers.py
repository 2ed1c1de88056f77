"""Parts of containers that several daemons share: probes, security context, the log sidecar."""

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.build import scripts

LOG_SIDECAR = scripts.read("log-sidecar.sh")
WAIT_FOR_PORT = scripts.read("wait-for-port.sh")
# Seconds that one startup probe waits for a daemon before it fails.
WAIT = 60


def http_probe(path: str, port: str, *, period: int, failures: int) -> Tree:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": period, "failureThreshold": failures}


def tcp_probe(port: int, *, period: int, failures: int) -> Tree:
    return {"tcpSocket": {"port": port}, "periodSeconds": period, "failureThreshold": failures}


def startup_probe(port: int, *path: str, seconds: int) -> Tree:
    """Succeeds as soon as the daemon listens, or answers; after so many seconds the container is restarted."""
    command = ["sh", "-c", WAIT_FOR_PORT, str(port), *path]
    return {
        "exec": {"command": command},
        "periodSeconds": 1,
        "timeoutSeconds": WAIT,
        "failureThreshold": -(-seconds // WAIT),
    }


def nonroot(uid: int) -> Tree:
    """The security context of one unprivileged user."""
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid}


def tcp_port(name: str, port: int) -> Tree:
    return {"name": name, "containerPort": port, "protocol": "TCP"}


def log_sidecar(path: str, image: str) -> Tree:
    """A sidecar that prints a daemon's log file, so that it becomes a container log."""
    return {
        "name": names.LOGFILE,
        "image": image,
        "restartPolicy": "Always",
        "command": ["sh", "-c", LOG_SIDECAR],
        "env": [{"name": "SOCKET", "value": path}],
        "volumeMounts": [{"name": names.VOLUME_LOGFILE, "mountPath": names.LOG_DIR}],
    }
