"""A web handler looks at a file before it serves it: on the loop, or ("fixed") in a thread."""

import asyncio
import concurrent.futures.thread
import os
import sys

fixed = "fixed" in sys.argv


async def serve_file(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    size = (await asyncio.to_thread(os.stat, "page.html")).st_size if fixed else os.stat("page.html").st_size
    writer.write(f"{size}\n".encode())
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve_file, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET\n")
        await reader.readline()
        writer.close()
        await asyncio.sleep(0.02)
    server.close()


assert concurrent.futures.thread
asyncio.run(main())
