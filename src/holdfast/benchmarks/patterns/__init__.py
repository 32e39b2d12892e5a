"""A first small stream: procedural image classes, learned in stages. It shows forgetting in seconds."""
