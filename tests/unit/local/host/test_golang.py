from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import golang
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.sources import SOURCES


def test_the_binary_gets_the_version_of_kubernetes() -> None:
    flags = golang.link_flags(SOURCES / "local" / "kubernetes")
    assert "version.gitVersion=v1.36." in flags
    assert "version.gitMajor=1 " in flags
    assert flags.endswith("version.gitMinor=36")


def test_a_module_without_kubernetes_gets_no_version() -> None:
    assert golang.link_flags(SOURCES / "local" / "kwok") == golang.LINK


def test_only_packages_count_as_progress() -> None:
    step = Step("compile")
    for line in ("k8s.io/api/core/v1", "# k8s.io/api/core/v1", "main.go:3: undefined: x", "", "go: downloading a v1"):
        golang._count(line, step)
    assert step.done == 1


def test_a_missing_go_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match=r"Go is not installed.*Install Go 1\.26"):
        golang.build(tmp_path, ".", tmp_path / "out", tasks=Tasks(), progress=Progress())


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ('Get "https://r/": dial tcp: lookup r: no such host', "reaches"),
        ("go: go.mod requires go >= 1.26.0 (running go 1.24.0)", "Install Go 1.26"),
        ("internal compiler error", "again"),
    ],
)
def test_a_failed_build_has_a_remedy(output: str, remedy: str) -> None:
    assert remedy in golang._remedy(output)
