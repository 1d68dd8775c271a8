"""The rows of the call table, one module a family. `interfaces.calls` joins them."""
