"""The benchmarks of CFST: combinations of concepts, learned in stages, then tested for compositionality."""
