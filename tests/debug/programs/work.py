"""As many threads as the first argument says list a folder, in turns."""

import os
import sys
import threading
import time

lock = threading.Lock()


def look(who: int, n: int) -> list[str]:
    secret = f"{who}-{n}"
    return os.listdir("/") if secret else []  # line: lists


def worker(who: int) -> None:
    for n in range(4):
        with lock:
            look(who, n)  # line: calls
        time.sleep(0.0001)


threads = [threading.Thread(target=worker, args=(who,)) for who in range(1, int(sys.argv[1]))]
for one in threads:
    one.start()
worker(0)
for one in threads:
    one.join()
