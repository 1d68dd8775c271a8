"""The terminal interface: browse a trace, its processes, its state at any event, and its hangs.

`tui.model` holds everything that reads or computes and imports no Textual; the other modules show it.
"""
