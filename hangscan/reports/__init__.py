"""Forms of a report: a table for people, JSON, SARIF, and one HTML page."""

from __future__ import annotations

PROJECTION_LIMITS = (
    "A projection takes the recorded run as it was: it cannot know what the program would have done "
    "otherwise because of time (timeouts, retries, other input meanwhile, work that another thread would "
    "have finished)."
)
"""What every report says of projections."""
