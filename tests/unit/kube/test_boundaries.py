"""Which modules may use the HTTP and Kubernetes libraries."""

import ast
from pathlib import Path

import kubeslurm

ROOT = Path(kubeslurm.__file__).parent


def imports(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_only_the_transports_import_the_http_and_kubernetes_libraries() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if imports(path) & {"aiohttp", "httpx2", "lightkube"}
        and path.relative_to(ROOT).parts[0] not in ("slurm", "local")
    }
    assert users == {"engine/http.py", "kube/transport/connection.py", "kube/transport/http.py"}
