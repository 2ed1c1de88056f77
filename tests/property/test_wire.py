"""However the bytes of a watch arrive: the same lines come out."""

import asyncio
from collections.abc import AsyncIterator

import hypothesis.strategies as st
from hypothesis import given, settings

from kubeslurm.kube.transport.stream import batches


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [part for part in (*parts, data) if part]


async def lines_of(parts: list[bytes]) -> list[bytes]:
    async def source() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return [line async for lines in batches(source()) for line in lines]


@settings(deadline=None)
@given(lines=st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=10), data=st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    parts = cut(whole, data.draw(st.lists(st.integers(1, 25))))
    assert asyncio.run(lines_of(parts)) == lines
