"""What crosses the boundary between a program and its environment, as data.

`interfaces.calls.CALLS` is the one table of system calls; the C core's header is generated from it
(`python -m interfaces.generate OUT.h`), and everything that shows calls to people decodes from it.
Only `interfaces.abi` needs numpy; the rest uses the standard library alone, so that a build can run it.
"""
