"""Hashes of what pods are made from, in the form that annotations of existing clusters have."""

import hashlib
from collections.abc import Mapping


def of_values(data: Mapping[str, bytes]) -> str:
    """Over the values in key order, as the annotations of running pods have it; empty if there are none."""
    return hashlib.sha256(b"".join(value for _, value in sorted(data.items()))).hexdigest() if data else ""


def of_files(files: Mapping[str, str]) -> str:
    """Over names and contents, so that moving text from one file to another counts as a change."""
    sum_ = hashlib.sha256()
    for name, text in sorted(files.items()):
        sum_.update(f"{name}\0{len(text)}\0{text}".encode())
    return sum_.hexdigest()[:16]
