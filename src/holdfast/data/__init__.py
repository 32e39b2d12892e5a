"""Examples as columnar tables, their order, and transforms of streams."""
