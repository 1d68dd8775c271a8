"""CPython: asyncio with sockets, subprocesses, timers, threads, signals."""

import asyncio
import os
import signal
import sys


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def client(port: int, n: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    out = ""
    for i in range(10):
        writer.write(b"line %d %d\n" % (n, i))
        out += (await reader.readline()).decode().strip()
    writer.close()
    return out


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
    results = await asyncio.gather(*(client(port, n) for n in range(20)))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print(6*7)", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    os.kill(os.getpid(), signal.SIGUSR1)
    await got.wait()
    total = await asyncio.to_thread(lambda: sum(range(10000)))
    print(len("".join(results)), out, total)
    server.close()


asyncio.run(main())
