"""Fast access to a Slurm cluster: requests to the API server, and commands in the slurmctld container."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

from kubeslurm.api.meta import Tree
from kubeslurm.local.cluster.cluster import Cluster

# Short enough for exact results, long enough to leave the CPU to what is measured.
POLL_INTERVAL = 0.02
END_OF_OUTPUT = "-- end of output --"
SLINKY = "/apis/slinky.slurm.net/v1beta1"


def wait_until(done: Callable[[], bool], timeout: float = 120.0) -> None:
    """Wait until `done` returns True; fails after the timeout."""
    end = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < end, f"timed out after {timeout:.0f} s"
        time.sleep(POLL_INTERVAL)


class Api:
    """The API server over one open connection: a kubectl would take longer to start than what is measured."""

    def __init__(self, kubeconfig: Path) -> None:
        config = KubeConfig.from_file(kubeconfig).get()
        assert config is not None, f"{kubeconfig} has no current context"
        self._http = httpx2.Client(**ConnectionParams().httpx_params(config))

    def find(self, path: str) -> Tree | None:
        response = self._http.get(path)
        return None if response.status_code == 404 else self._body(response)

    def get(self, path: str) -> Tree:
        return self._body(self._http.get(path))

    def text(self, path: str) -> str:
        return self._http.get(path).raise_for_status().text

    def patch(self, path: str, change: Tree) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        self._body(self._http.patch(path, content=json.dumps(change), headers=headers))

    def delete(self, path: str, grace: int | None = None) -> None:
        options = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        self._body(self._http.delete(path, params=options))

    def close(self) -> None:
        self._http.close()

    def _body(self, response: httpx2.Response) -> Tree:
        body: Tree = response.raise_for_status().json()
        return body


class Shell:
    """A shell in the slurmctld container that stays open between commands."""

    def __init__(self, cluster: Cluster, namespace: str, pod: str) -> None:
        self._command = cluster.kubectl_command(
            f"--namespace={namespace}", "exec", "--stdin", pod, "--container=slurmctld", "--", "sh"
        )
        self._process: subprocess.Popen[str] | None = None

    def run(self, command: str) -> str:
        """The output of a command; empty if the slurmctld container does not run."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        output: list[str] = []
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{command} 2>/dev/null; echo '{END_OF_OUTPUT}'\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line.strip() == END_OF_OUTPUT:
                    return "".join(output)
                output.append(line)
        except BrokenPipeError:
            pass
        self.close()
        return ""

    def close(self) -> None:
        """End the shell; the next command opens a new one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class SlurmCluster:
    """One Slurm cluster."""

    def __init__(self, cluster: Cluster, api: Api, namespace: str, name: str) -> None:
        self.cluster = cluster
        self.api = api
        self.namespace = namespace
        self.name = name
        self.controller = f"{SLINKY}/namespaces/{namespace}/controllers/{name}"
        self.nodeset = f"{SLINKY}/namespaces/{namespace}/nodesets/{name}-worker-worker"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.shell = Shell(cluster, namespace, f"{name}-controller-0")

    def states(self) -> dict[str, str]:
        """The state of every Slurm node by name."""
        lines = self.shell.run("sinfo --noheader --Node --format='%N %T'").splitlines()
        return dict(line.split(None, 1) for line in lines if len(line.split()) == 2)

    def idle(self, count: int) -> bool:
        """Whether Slurm has exactly this many nodes, and all are idle."""
        found = self.states()
        return len(found) == count and set(found.values()) == {"idle"}

    def workers(self) -> dict[str, Tree]:
        """The worker pods by their Slurm node name."""
        found = self.api.get(f"{self.pods}?labelSelector=app.kubernetes.io/name=slurmd")["items"]
        return {pod["spec"]["hostname"]: pod for pod in found}

    def run_in(self, pod: str, container: str, *command: str) -> str:
        """The output of a command in any container."""
        prefix = (f"--namespace={self.namespace}", "exec", pod, f"--container={container}", "--")
        return self.cluster.kubectl(*prefix, *command)


def uid(found: Tree | None) -> str:
    """The uid of an object; empty if there is none."""
    return str(found["metadata"]["uid"]) if found else ""
