"""The tree beside a list: an event's or a candidate's details, and what a replay tells about it."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tui.model.detail import Node


class DetailTree(Tree[Node]):
    """Shows a Node. Enter on a line that stands for an event goes there."""

    DEFAULT_CSS = """
    DetailTree { height: 45%; max-height: 16; border-top: solid $primary; background: $surface; padding: 0 1;
                 scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    DetailTree:focus { border-top: solid $accent; }
    """

    class Follow(Message):
        """The user wants to see another row."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.guide_depth = 2
        self.auto_expand = False
        self._extra: list[Node] = []

    def show(self, node: Node) -> None:
        """Show a tree; what a replay told before goes away."""
        self._extra = []
        self._fill(node)

    def add(self, node: Node) -> None:
        """Put what a replay told on top; an earlier answer to the same question is replaced."""
        self._extra = [node, *(known for known in self._extra if known.text != node.text)]
        shown = self.root.data
        self._fill(shown if isinstance(shown, Node) else Node(""))
        self.scroll_home(animate=False)

    def say(self, text: str) -> None:
        """Show one line instead of a tree."""
        self.show(Node(text))

    def text(self) -> str:
        """Everything that is unfolded, as lines of text."""
        lines: list[str] = []

        def walk(node: TreeNode[Node], depth: int) -> None:
            lines.append("  " * depth + str(node.label))
            if node.is_expanded:
                for child in node.children:
                    walk(child, depth + 1)

        walk(self.root, 0)
        return "\n".join(lines)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Follow, or fold and unfold."""
        event.stop()
        node = event.node
        if node.data is not None and node.data.row is not None:
            self.post_message(self.Follow(node.data.row))
        elif node.allow_expand:
            node.toggle()

    def _fill(self, node: Node) -> None:
        self.clear()
        self.root.data = node
        self.root.set_label(_label(node))
        for child in (*self._extra, *node.children):
            self._add(self.root, child)
        self.root.expand()

    def _add(self, parent: TreeNode[Node], node: Node) -> None:
        if not node.children:
            parent.add_leaf(_label(node), node)
            return
        made = parent.add(_label(node), node, expand=node.open)
        for child in node.children:
            self._add(made, child)


def _label(node: Node) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    if not node.value:
        text.append(node.text)
        return text
    text.append(f"{node.text}: ", "bold")
    text.append(node.value, "underline" if node.row is not None else "")
    return text
