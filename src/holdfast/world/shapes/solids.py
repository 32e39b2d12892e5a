"""Geometric solids; `people.py` explains the format."""

SOLIDS: dict[str, str] = {
    "cube": """
        body main poly 0 26 64 26 64 96 0 96
        - light poly 0 26 28 0 92 0 64 26
        - dark poly 64 26 92 0 92 70 64 96""",
    "sphere": """
        body main oval 0 0 96 96
        - dark poly 92 40 90 66 70 90 40 95 64 84 82 62
        - light oval 20 16 44 38
        - white oval 26 20 36 30""",
    "cylinder": """
        body main box 0 14 80 90
        body main oval 0 74 80 106
        - dark poly 60 14 80 14 80 92 72 98 60 102
        - light oval 0 0 80 28""",
}
