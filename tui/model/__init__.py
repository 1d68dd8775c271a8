"""What the screens show, computed without Textual: indexes, views, filters, decoded rows and details."""
