"""What the fields of a schema mean: the docstrings below them, read when they are asked for."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def field_manual(model: type[BaseModel]) -> dict[str, str]:
    """Docstring of each field of `model`, inherited ones too.

    Pydantic can do this (`use_attribute_docstrings`), but parses the source of every class at every start.
    """
    manual: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            manual.update(_documented(_class_body(base)))
    return manual


def _class_body(model: type[BaseModel]) -> list[ast.stmt]:
    return _classes(model.__module__, inspect.getsourcefile(model) or "").get(model.__name__, [])


@cache
def _classes(module: str, file: str) -> dict[str, list[ast.stmt]]:
    with open(file, encoding="utf-8") as stream:  # noqa: PTH123  one read, no path arithmetic
        tree = ast.parse(stream.read())
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            yield field.target.id, inspect.cleandoc(text.value.value)
