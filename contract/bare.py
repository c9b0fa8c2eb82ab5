"""What of a function of Python is its code? All but docstrings and annotations, which do nothing when it is called."""

from __future__ import annotations

import ast


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
