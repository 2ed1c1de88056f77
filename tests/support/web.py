"""HTTP requests from inside the cluster's network, as pods send them."""

import json
import sys
from collections.abc import Mapping

from kubeslurm.local.cluster.cluster import Cluster

# In a process of its own, because a network namespace belongs to a whole process.
SCRIPT = """
import http.client, json, sys, urllib.parse
url, headers, body = json.loads(sys.argv[1])
server, path = urllib.parse.urlsplit(url)[1:3]
connection = http.client.HTTPConnection(server, timeout=120)
connection.request("POST" if body else "GET", path, body or None, headers)
answer = connection.getresponse()
sys.stdout.write(answer.read().decode())
sys.exit(answer.status >= 400)
"""


def fetch(cluster: Cluster, url: str, *, headers: Mapping[str, str] | None = None, body: str = "") -> str:
    """The answer of a server in the cluster to a GET, or to a POST if there is a body."""
    request = json.dumps((url, dict(headers or {}), body))
    answer = cluster.exec_in_network([sys.executable, "-I", "-c", SCRIPT, request])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout
