"""Plants; `people.py` explains the format."""

PLANTS: dict[str, str] = {
    "grass": """
        body main poly 0 80 4 30 14 62 20 10 30 60 40 0 48 58 60 18 66 60 78 4 84 62 98 14 100 60 112 26 116 80
        - dark poly 8 80 12 44 22 80; - dark poly 30 80 36 30 46 80; - dark poly 56 80 60 40 70 80
        - dark poly 84 80 92 38 98 80
        - light poly 20 80 28 46 34 80; - light poly 70 80 76 34 82 80""",
    "flower": """
        stem green line 40 60 40 140 5; leaf green poly 40 116 66 92 70 104; leaf green poly 40 126 14 102 10 114
        head main oval 26 0 54 34; head main oval 50 16 82 46; head main oval 42 40 72 74
        head main oval 8 40 38 74
        head main oval -2 16 30 46; - yellow oval 28 26 52 50; - orange oval 34 32 46 44""",
    "leaves": """
        - brown line 8 104 92 12 4; leaf main poly 30 78 4 66 -4 40 22 46 34 62; - dark line 32 76 2 44 2
        leaf main poly 52 54 26 40 22 12 46 20 56 40; - dark line 52 52 26 16 2
        leaf main poly 44 66 50 92 78 98 72 74 58 62; - dark line 46 66 74 94 2
        leaf main poly 66 40 74 66 102 72 96 48 80 36
        - dark line 68 40 98 68 2; leaf main poly 78 28 76 2 100 -12 108 12 96 26; - dark line 80 26 102 -6 2""",
    "potted plant": """
        - green line 50 80 50 40 4; head green poly 50 80 18 58 4 28 30 40; - green poly 50 80 30 36 34 4 50 34
        - lime poly 50 80 52 30 68 2 68 40
        - green poly 50 80 70 40 98 26 84 58; - lime poly 50 82 14 76 -2 56 28 60
        - lime poly 50 82 86 76 102 56 74 60
        pot main poly 20 84 80 84 72 132 28 132; - dark box 16 78 84 90""",
}
