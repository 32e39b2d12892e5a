"""Text classifications one after another, answered in words (O-LoRA: Wang et al., 2023)."""
