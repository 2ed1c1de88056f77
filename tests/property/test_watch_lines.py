"""The lines of a watch do not depend on how its bytes arrive."""

import asyncio
from collections.abc import AsyncIterator

import hypothesis.strategies as st
from hypothesis import given, settings

from kubeslurm.kube.transport.stream import line_batches


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

    return [line async for lines in line_batches(source()) for line in lines]


@settings(deadline=None)
@given(lines=st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=10), data=st.data())
def test_lines_do_not_depend_on_the_chunks(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    parts = cut(whole, data.draw(st.lists(st.integers(1, 25))))
    assert asyncio.run(lines_of(parts)) == lines
