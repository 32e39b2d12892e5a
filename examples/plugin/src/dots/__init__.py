"""One of each: an algorithm, a model, a benchmark with a task kind of its own, a dataset and a memory."""
