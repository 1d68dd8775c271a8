"""Calls the kernel from nested functions with local variables."""

import os


def inner(count: int) -> list[str]:
    secret = "abc" * count
    return os.listdir("/") if secret else []  # line: lists


def outer(number: int) -> list[str]:
    return inner(number + 1)  # line: calls


outer(2)
