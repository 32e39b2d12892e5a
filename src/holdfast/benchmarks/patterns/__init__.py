"""A small introductory stream: procedural image classes, learned in stages. It shows forgetting in seconds."""
