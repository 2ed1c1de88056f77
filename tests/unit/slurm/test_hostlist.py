import pytest

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.errors import SlurmError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("a", ["a"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("gpu-[0,2-3]-x,login", ["gpu-0-x", "gpu-2-x", "gpu-3-x", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_lists_expand_as_slurm_reads_them(text: str, names: list[str]) -> None:
    assert hostlist.expand(text) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n3", "n1", "n2", "n1"], "n[1-3]"),
        (["n08", "n09", "n10"], "n10,n[08-09]"),
        (["n9", "n10"], "n[9,10]"),
        (["a-1-x", "a-2-x"], "a-[1-2]-x"),
        (["login", "n1"], "login,n1"),
    ],
)
def test_names_compress_into_ranges(names: list[str], text: str) -> None:
    assert hostlist.compress(names) == text


@pytest.mark.parametrize("text", ["n[1-", "n]1[", "n[[1]]", "n[a-b]", "n[3-1]", "n[0-99999999]"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hostlist") as failure:
        hostlist.expand(text)
    assert isinstance(failure.value, SlurmError)


def test_chunks_keep_every_name_once() -> None:
    assert hostlist.chunks(["a", "b", "a", "c"], 2) == [["a", "b"], ["c"]]
