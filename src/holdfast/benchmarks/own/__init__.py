"""The common part of benchmarks of a user's own data: from a list of examples to stages, heads, scores and measures.

`folder` reads pictures in folders, `table` reads rows of a table, and `holdfast.streams` takes what is in memory. Each
produces a `Listed`; all later steps are here.
"""
