from itertools import groupby

from tests.support.order import place

TESTS = [
    f"tests/{folder}/test_{file}.py::test_{number}[a/b::c]"
    for folder in ("a", "b", "b/deep")
    for file in ("one", "two", "three")
    for number in range(4)
]


def shuffled(seed: int, tests: list[str] = TESTS) -> list[str]:
    return sorted(tests, key=lambda nodeid: place(nodeid, seed))


def pieces(tests: list[str], levels: int) -> list[str]:
    """The folders or files in the order in which they come; twice if they come in two pieces."""
    return [key for key, _ in groupby("/".join(each.partition("::")[0].split("/")[:levels]) for each in tests)]


def test_the_same_seed_gives_the_same_order_wherever_the_tests_come_from() -> None:
    assert shuffled(7) == shuffled(7, TESTS[::-1])
    assert len({tuple(shuffled(seed)) for seed in range(20)}) == 20


def test_files_and_folders_stay_in_one_piece() -> None:
    for seed in range(20):
        order = shuffled(seed)
        assert len(pieces(order, 4)) == 9
        assert sorted(pieces(order, 2)) == ["tests/a", "tests/b"]


def test_a_part_of_the_tests_has_the_order_that_it_has_in_the_whole() -> None:
    part = TESTS[::3]
    assert shuffled(3, part) == [each for each in shuffled(3) if each in part]


def test_tests_within_a_file_are_shuffled_too() -> None:
    first = [each for each in TESTS if "a/test_one" in each]
    assert len({tuple(shuffled(seed, first)) for seed in range(20)}) > 10
