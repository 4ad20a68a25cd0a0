"""Larger and smaller of two numbers by arithmetic alone, so that formulas take arrays (numpy) as well as numbers."""


def larger(a: float, b: float) -> float:
    """The larger of two numbers, element by element for arrays.

    >>> larger(2.0, 3.0)
    3.0
    """
    return (a + b + abs(a - b)) / 2


def smaller(a: float, b: float) -> float:
    """The smaller of two numbers, element by element for arrays.

    >>> smaller(2.0, 3.0)
    2.0
    """
    return (a + b - abs(a - b)) / 2
