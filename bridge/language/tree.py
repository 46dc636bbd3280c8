"""What all nodes of the property tree share: content equality, hashing, and their text.

Machine-written models hold chains of thousands of operators, so nothing here recurses into the
tree: hashes are made bottom-up with the nodes, and the rest walks with a stack of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, ClassVar, Self, TypeAlias


class Precedence(IntEnum):
    """How tightly operators bind, loosest first."""

    TEMPORAL_BINARY = 0
    TEMPORAL_UNARY = 1
    CONDITIONAL = 2
    IMPLIES = 3
    IFF = 4
    OR = 5
    AND = 6
    NOT = 7
    EQUALITY = 8
    RELATION = 9
    SUM = 10
    PRODUCT = 11
    POWER = 12
    MINUS = 13
    BASIC = 14


class Node:
    """A node of the tree: immutable, equal to nodes of the same content, hashable.

    Its subclasses are dataclasses; `_parts` describes their text: strings, and nodes in
    the places of theirs.

    Attributes
    ----------
    position
        The line and column where it starts in the text that it was read from, or None; no part of
        its content.
    """

    __match_args__: ClassVar[tuple[str, ...]]

    _hash: int
    position: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((type(self), *self._content())))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            # True, 1 and 1.0 are equal in Python, and different in the language.
            if type(left) is not type(right):
                return False
            if isinstance(left, Node):
                if left._hash != right._hash:
                    return False
                pairs.extend(zip(left._content(), right._content(), strict=True))
            elif isinstance(left, tuple):
                if len(left) != len(right):
                    return False
                pairs.extend(zip(left, right, strict=True))
            elif left != right:
                return False
        return True

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        # Hashes of strings differ from process to process.
        return type(self), self._content()

    def __str__(self) -> str:
        finished: list[str] = []
        parts: list[TextPart] = [self]
        while parts:
            part = parts.pop()
            if isinstance(part, Node):
                parts.extend(reversed(part._parts()))
            else:
                finished.append(part)
        return "".join(finished)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def at(self, position: tuple[int, int] | None) -> Self:
        """Return the node, its position noted where it had none."""
        if self.position is None:
            object.__setattr__(self, "position", position)
        return self

    def _content(self) -> tuple[Any, ...]:
        # The names of a dataclass's fields, in their order.
        return tuple([getattr(self, name) for name in self.__match_args__])

    @property
    def _precedence(self) -> Precedence:
        return Precedence.BASIC

    def _parts(self) -> list[TextPart]:
        raise NotImplementedError

    def children(self) -> Iterator[Node]:
        """Return the nodes that this one is made of, in the order of the fields."""
        for value in self._content():
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from (item for item in value if isinstance(item, Node))

    def walk(self) -> Iterator[Node]:
        """Return this node and all below it, each before those below it, from left to right."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(list(node.children())))

    def walk_up(self) -> Iterator[Node]:
        """Return this node and all below it, each after those below it, from left to right."""
        waiting: list[tuple[Node, bool]] = [(self, False)]
        while waiting:
            node, done = waiting.pop()
            if done:
                yield node
            else:
                waiting.append((node, True))
                waiting.extend((child, False) for child in reversed(list(node.children())))

    def _lower_in_parentheses(self, operand: Node) -> list[TextPart]:
        return _wrapped(operand, operand._precedence < self._precedence)

    def _same_in_parentheses(self, operand: Node) -> list[TextPart]:
        return _wrapped(operand, operand._precedence <= self._precedence)


TextPart: TypeAlias = str | Node


def rebuilt(root: Node, change: Callable[[Node], Node]) -> Any:
    """Return a tree with its nodes changed, each after those below it; positions stay.

    Parameters
    ----------
    root
        The tree.
    change
        Returns what takes a node's place.
    """
    done: dict[int, Node] = {}

    def replaced(value: Any) -> Any:
        if isinstance(value, Node):
            return done[id(value)]
        if isinstance(value, tuple):
            return tuple(replaced(item) for item in value)
        return value

    for node in root.walk_up():
        old = node._content()
        new = tuple(replaced(value) for value in old)
        same = all(a is b or not isinstance(b, Node | tuple) for a, b in zip(old, new, strict=True))
        own = node if same else type(node)(*new).at(node.position)
        done[id(node)] = change(own).at(node.position)
    return done[id(root)]


def _wrapped(operand: Node, wanted: bool) -> list[TextPart]:
    return ["(", operand, ")"] if wanted else [operand]
