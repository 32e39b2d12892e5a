"""Importing this makes Python look for cyclic garbage seldom: for the command line and its workers.

Importing torch makes some 300,000 objects, which stay. With Python's default, they are searched for garbage again and
again, which takes a fifth of the time to start, and once more at the end.
"""

import gc

gc.set_threshold(50_000, 20, 100)
