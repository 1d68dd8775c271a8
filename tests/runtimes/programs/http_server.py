"""CPython: a threading HTTP server, asked by several threads of the same process."""

import http.server
import threading
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = (self.path * 50).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever)
thread.start()
sizes: list[int] = []


def ask(n: int) -> None:
    for i in range(10):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{n}/{i}") as answer:
            sizes.append(len(answer.read()))


clients = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
for client in clients:
    client.start()
for client in clients:
    client.join()
server.shutdown()
thread.join()
print(sum(sizes), len(sizes))
