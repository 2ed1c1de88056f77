"""However a chunked body is cut into chunks and however those arrive: the same bytes come out."""

import asyncio
from collections.abc import AsyncIterator

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubeslurm.kube.stream import batches
from kubeslurm.kube.wire import Answer, Chunks, WireError

BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=12)


def chunked(pieces: list[bytes], *, end: bool = True) -> bytes:
    body = b"".join(f"{len(piece):x}".encode() + b"\r\n" + piece + b"\r\n" for piece in pieces)
    return body + b"0\r\n\r\n" if end else body


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [part for part in (*parts, data) if part]


@given(pieces=BODIES, sizes=st.lists(st.integers(1, 30)))
def test_a_body_in_chunks_is_put_together_again(pieces: list[bytes], sizes: list[int]) -> None:
    body = Chunks()
    found = b"".join(body.feed(part) for part in cut(chunked(pieces), sizes))
    assert found == b"".join(pieces)
    assert body.complete


@given(pieces=BODIES, sizes=st.lists(st.integers(1, 30)))
def test_a_body_that_breaks_off_is_never_taken_for_complete(pieces: list[bytes], sizes: list[int]) -> None:
    body = Chunks()
    for part in cut(chunked(pieces, end=False), sizes):
        body.feed(part)
    assert not body.complete


async def lines_of(parts: list[bytes]) -> list[bytes]:
    async def source() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return [line async for lines in batches(source()) for line in lines]


@given(lines=st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=10), data=st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    parts = cut(whole, data.draw(st.lists(st.integers(1, 25))))
    assert asyncio.run(lines_of(parts)) == lines


def answer(data: bytes, headers: dict[str, str]) -> Answer:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return Answer(reader, 200, headers, silence=1.0)


async def test_a_body_of_known_length_ends_there() -> None:
    assert await answer(b"hello", {"content-length": "5"}).text() == b"hello"


async def test_a_body_without_length_ends_with_the_connection() -> None:
    assert await answer(b"hello", {}).text() == b"hello"


async def test_a_connection_that_ends_too_early_is_an_error() -> None:
    with pytest.raises(WireError, match="middle"):
        await answer(b"hel", {"content-length": "5"}).text()
    with pytest.raises(WireError, match="middle"):
        await answer(chunked([b"hel"], end=False), {"transfer-encoding": "chunked"}).text()


async def test_silence_is_an_error() -> None:
    reader = asyncio.StreamReader()
    with pytest.raises(WireError, match="Timeout"):
        await Answer(reader, 200, {}, silence=0.01).text()


async def test_nonsense_instead_of_a_chunk_is_an_error() -> None:
    with pytest.raises(WireError, match="ValueError"):
        await answer(b"what?\r\n", {"transfer-encoding": "chunked"}).text()
