"""What benchmarks of a user's own data share: from a list of examples to stages, heads, scores and measures.

`folder` reads pictures in folders, `table` reads rows of a table, and `holdfast.streams` takes what is in memory. Each
gives a `Listed`; everything after that is here.
"""
