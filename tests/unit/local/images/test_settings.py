"""What a build borrows from the machine."""

from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.images import settings

MODERN = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
CLASSIC = """\
# deb http://old.example/debian bookworm main
deb [signed-by=/k.gpg] https://vendor.example/apt stable main
deb http://classic.example/debian/ bookworm main
"""


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_the_mirror_comes_from_modern_sources(apt: Path) -> None:
    (apt / "sources.list.d" / "debian.sources").write_text(MODERN)
    assert settings.debian_mirror(apt) == "http://mirror.example/debian"


def test_the_mirror_comes_from_a_classic_list_past_comments_and_vendors(apt: Path) -> None:
    (apt / "sources.list").write_text(CLASSIC)
    assert settings.debian_mirror(apt) == "http://classic.example/debian"


def test_a_machine_without_a_debian_mirror_gets_a_clear_error(apt: Path) -> None:
    (apt / "sources.list").write_text("deb http://archive.example/ubuntu noble main\n")
    with pytest.raises(LocalError, match="No Debian mirror"):
        settings.debian_mirror(apt)


def test_apt_prefers_forky_and_keeps_the_machines_proxy() -> None:
    machine = 'Acquire::http::Proxy "http://proxy.example:3128";\nAcquire::https::Proxy "";\nAPT::Other "x";\n'
    options = settings.apt_options(machine).splitlines()
    assert options[0] == 'APT::Default-Release "forky";'
    assert 'Acquire::http::Proxy "http://proxy.example:3128";' in options
    assert not any("APT::Other" in line or '""' in line for line in options)


def test_pip_gets_the_machines_index_and_certificates() -> None:
    listed = "global.index-url='https://index.example/simple'\n:env:.find-links='/wheels'\n"
    text = settings.pip_settings(listed, {"PIP_TIMEOUT": "60"})
    assert text == f"[global]\ncert = {settings.CA}\nindex-url = https://index.example/simple\ntimeout = 60\n"


def test_settings_are_files_for_root_only_laid_over_the_image_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "debian_mirror", lambda: "http://mirror.example/debian")
    options = settings.write(tmp_path / "settings")
    assert (tmp_path / "settings").stat().st_mode & 0o077 == 0
    for option in options:
        source, place, mode = option.removeprefix("--volume=").split(":")
        assert Path(source).is_file()
        assert place.startswith("/")
        assert mode == "ro"
