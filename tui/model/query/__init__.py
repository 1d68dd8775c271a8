"""The filter language: `call == read and duration > 10ms and path ~ "*.db"`.

`language` turns text into a tree, `evaluate` finds the rows it lets pass, `complete` proposes what may come
next. docs/tui.md describes the language for its users.
"""
