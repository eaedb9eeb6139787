"""What is known of a combined operator by what is known of its parts: promises such as `is_self_adjoint`."""

from __future__ import annotations

from typing import Any

__all__ = ["combined_commuting_positive_definite_hint", "combined_commuting_self_adjoint_hint"]
__all__ += ["combined_non_singular_hint", "is_square"]


def combined_commuting_self_adjoint_hint(operator_a: Any, operator_b: Any) -> bool | None:
    """Of the product of two operators that commute."""
    if operator_a.is_self_adjoint and operator_b.is_self_adjoint:
        return True
    one_is_not = operator_a.is_self_adjoint is False or operator_b.is_self_adjoint is False
    both_are_known = operator_a.is_self_adjoint is not None and operator_b.is_self_adjoint is not None
    differing = operator_a.is_self_adjoint != operator_b.is_self_adjoint
    return False if one_is_not and both_are_known and differing else None


def combined_commuting_positive_definite_hint(operator_a: Any, operator_b: Any) -> bool | None:
    """Of the product of two operators that commute."""
    both = operator_a.is_positive_definite is True and operator_a.is_self_adjoint is True
    both = both and operator_b.is_positive_definite is True and operator_b.is_self_adjoint is True
    return True if both else None


def combined_non_singular_hint(operator_a: Any, operator_b: Any) -> bool | None:
    """Of a product."""
    if operator_a.is_non_singular is False or operator_b.is_non_singular is False:
        return False
    return operator_a.is_non_singular and operator_b.is_non_singular


def is_square(operator_a: Any, operator_b: Any) -> bool | None:
    """Of a product."""
    if operator_a.is_square and operator_b.is_square:
        return True
    if operator_a.is_square is False and operator_b.is_square is False:
        sizes = operator_a.range_dimension, operator_b.domain_dimension
        return bool(sizes[0] == sizes[1]) if None not in [getattr(each, "value", each) for each in sizes] else None
    if operator_a.is_square is not None and operator_b.is_square is not None:
        return False
    return None
