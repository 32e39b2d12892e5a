"""Examples as columnar tables, orders of them, and transforms of streams."""
