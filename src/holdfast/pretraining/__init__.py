"""Pre-training: encoders, small frozen networks, and feature maps, each made once for other runs."""
