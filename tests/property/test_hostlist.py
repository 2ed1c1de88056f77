"""Compressing and expanding are inverse for every set of names that Slurm allows."""

from hypothesis import example, given
from hypothesis import strategies as st

from kubeslurm.slurm import hostlist

names = st.from_regex(r"\A[a-z][a-z0-9.-]{0,12}[a-z0-9]\Z")
numbered = st.builds(
    lambda prefix, number, width, suffix: f"{prefix}{number:0{width}}{suffix}",
    st.sampled_from(["n", "gpu-", "rack1-node"]),
    st.integers(0, 120),
    st.integers(1, 4),
    st.sampled_from(["", "-ib", "x"]),
)


@given(st.lists(names | numbered, max_size=60))
@example(["n9", "n10", "n09", "n010"])
@example(["n0", "n00", "n000"])
def test_expanding_a_compressed_list_gives_the_same_names(hosts: list[str]) -> None:
    assert sorted(hostlist.expand(hostlist.compress(hosts))) == sorted(set(hosts))


@given(st.lists(numbered, max_size=60))
def test_the_order_of_names_does_not_matter(hosts: list[str]) -> None:
    assert hostlist.compress(hosts) == hostlist.compress(reversed(hosts))


@given(st.text(alphabet="an019[],- ", max_size=30))
def test_any_text_is_a_hostlist_or_an_error_that_says_so(text: str) -> None:
    found, message = [], "hostlist"
    try:
        found = hostlist.expand(text)
    except ValueError as error:
        message = str(error)
    assert all(found)
    assert "hostlist" in message
