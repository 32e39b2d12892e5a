"""Results that print themselves as tables, which `reports` draws when they are looked at."""

from __future__ import annotations


class Drawn:
    """Something that is a table of text when it is printed, and of HTML in a notebook."""

    def __repr__(self) -> str:
        from holdfast.reports.shown import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from holdfast.reports.shown import as_html

        return as_html(self)
