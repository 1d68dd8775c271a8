"""CPython: multiprocessing by each start method (argv[1]), shared memory, queues, pools, an executor."""

import multiprocessing as mp
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory


def square(n: int) -> int:
    return n * n


def fill(name: str, value: int, done: "mp.Queue[int]") -> None:
    memory = shared_memory.SharedMemory(name=name)
    for i in range(100):
        memory.buf[value * 100 + i] = value + 1
    memory.close()
    done.put(value)


def add(counter: object, times: int) -> None:
    for _ in range(times):
        with counter.get_lock():
            counter.value += 1


if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    with context.Pool(3) as pool:
        print(sum(pool.map(square, range(300))))
    counter = context.Value("i", 0)
    workers = [context.Process(target=add, args=(counter, 50)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(counter.value)
    memory = shared_memory.SharedMemory(create=True, size=1000)
    done = context.Queue()
    workers = [context.Process(target=fill, args=(memory.name, i, done)) for i in range(3)]
    for worker in workers:
        worker.start()
    print(sorted(done.get() for _ in workers))
    for worker in workers:
        worker.join()
    if sys.argv[1] == "fork":
        print(sum(memory.buf[:300]))
    memory.close()
    memory.unlink()
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        print(sum(executor.map(square, range(100))))
