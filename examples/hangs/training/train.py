"""A training loop without a framework: each step waits for its batch, which one thread reads and unpacks.

Run: python3 train.py
"""

import pathlib
import queue
import random
import threading
import time
import zlib

SHARDS = pathlib.Path("shards")
SHARDS.mkdir(exist_ok=True)
random.seed(1)
for number in range(6):
    path = SHARDS / f"{number}.z"
    if not path.exists():
        path.write_bytes(zlib.compress(bytes(random.randrange(256) for _ in range(200_000))))

batches: "queue.Queue[bytes | None]" = queue.Queue(maxsize=2)


def load_batches() -> None:
    """The input pipeline: too slow by design."""
    for path in sorted(SHARDS.glob("*.z")):
        data = zlib.decompress(path.read_bytes())
        time.sleep(0.15)  # augmentation on another device
        batches.put(data)
    batches.put(None)


def forward_and_backward(weights: list[float], batch: bytes) -> float:
    loss = 0.0
    for index in range(60_000):
        wanted = batch[index] / 255
        place = index % len(weights)
        error = weights[place] - wanted
        weights[place] -= 0.01 * error
        loss += error * error
    return loss


def train_step(weights: list[float]) -> float | None:
    batch = batches.get()
    if batch is None:
        return None
    loss = forward_and_backward(weights, batch)
    (SHARDS / "checkpoint").write_text(repr(weights))
    return loss


weights = [0.0] * 64
threading.Thread(target=load_batches, daemon=True).start()
while (loss := train_step(weights)) is not None:
    print(f"{loss:.2f}")
