"""A shuffled order of tests that depends on nothing but a seed and the names of the tests."""

import hashlib
from itertools import accumulate


def place(nodeid: str, seed: int) -> tuple[bytes, ...]:
    """Where a test comes: folders among folders, files among files, tests within their file.

    So a file stays in one piece, and its fixtures are made once. A part of the suite has the order of the whole.
    """
    path, _, name = nodeid.partition("::")
    levels = (*accumulate(path.split("/"), "{}/{}".format), f"{path}::{name}")
    return tuple(hashlib.sha256(f"{seed} {level}".encode()).digest() for level in levels)
