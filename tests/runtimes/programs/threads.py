"""CPython: threads with locks, conditions and queues, a thread pool, and what order things happened in."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

order: list[int] = []
lock = threading.Condition()
todo: queue.Queue[int | None] = queue.Queue()


def work(me: int) -> None:
    while (item := todo.get()) is not None:
        with lock:
            order.append(me * 1000 + item)
            lock.notify_all()
        time.sleep(0.0002 * (item % 3))


threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
for thread in threads:
    thread.start()
for i in range(200):
    todo.put(i)
for _ in threads:
    todo.put(None)
for thread in threads:
    thread.join()
with ThreadPoolExecutor(4) as pool:
    squares = list(pool.map(lambda n: sum(range(n)), range(0, 20000, 500)))
print(sum(n * i for i, n in enumerate(order)), sum(squares), threading.active_count())
