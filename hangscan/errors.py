"""What can be wrong with a scan; the root of the tree is `interfaces.errors.RrPyError`.

RrPyError
+-- ScanError             what was asked for does not fit the trace
+-- EnvironmentFileError  an environment model cannot be used
+-- KnowledgeError        a pattern file or pattern store cannot be used
+-- SuppressionError      a suppression file cannot be used
"""

from __future__ import annotations

from interfaces.errors import RrPyError


class ScanError(RrPyError):
    """The trace has nothing that the options ask for."""


class EnvironmentFileError(RrPyError):
    """An environment model is unknown, or its file is wrong."""


class KnowledgeError(RrPyError):
    """A file of patterns, or a pattern store, cannot be used."""


class SuppressionError(RrPyError):
    """A suppression file cannot be read or has a wrong entry."""
