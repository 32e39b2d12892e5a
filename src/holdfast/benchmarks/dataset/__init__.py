"""A stream of classes from any dataset that has a reader."""
