"""What the connections to the API server and to slurmrestd have in common."""

import aiohttp


async def no_resend(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Middleware that keeps aiohttp from sending a change again by itself.

    aiohttp repeats a GET, PUT or DELETE whose connection ended without a response, but does so after no other kind of
    error. The first request may have been carried out; if the second finds no connection, it would seem that nothing
    was sent.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(f"{type(error).__name__} {error}".strip()) from error
