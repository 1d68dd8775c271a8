"""The command line of rr-py: one module a verb, one funnel for errors.

This package is the top of the house. It imports everything below and nothing imports it.
"""

__version__ = "0.1.0"
