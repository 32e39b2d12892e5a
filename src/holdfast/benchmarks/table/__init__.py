"""Tables of a user's own: rows of pictures, texts or both, each with one right answer."""
