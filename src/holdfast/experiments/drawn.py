"""Results that print as tables, which `reports` draws on demand."""

from __future__ import annotations


class Drawn:
    """Something that is shown as a text table when printed, and as an HTML table in a notebook."""

    def __repr__(self) -> str:
        from holdfast.reports.shown import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from holdfast.reports.shown import as_html

        return as_html(self)
