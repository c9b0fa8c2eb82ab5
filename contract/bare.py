"""What of a function of Python is its code? All but docstrings and annotations, which do nothing when it is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Union

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]


def definitions(node: ast.AST, within: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions and classes below `node` with their qualified names, also under a condition; the inner ones first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from definitions(child, f"{within}{child.name}.")
            yield within + child.name, child
        else:
            yield from definitions(child, within)


def bare(function: ast.AST) -> ast.AST:
    """The same tree, of a function or a class, without the docstrings and annotations of the functions in it."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return function
