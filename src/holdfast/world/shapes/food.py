"""Food; `people.py` explains the format."""

FOOD: dict[str, str] = {
    "banana": """
        body main poly 0 20 10 14 24 40 48 54 78 52 102 32 112 36 104 60 80 78 46 80 16 60
        - brown poly -4 12 8 6 12 16 2 22
        - brown poly 102 32 112 28 116 36 110 40; - dark line 10 24 36 62 3; - dark line 36 63 78 64 3""",
    "apple": """
        body main oval 0 22 56 100; body main oval 36 22 92 100; - main oval 18 30 74 104
        stem brown line 46 34 52 8 6
        leaf green poly 52 18 66 2 86 4 76 18; - light oval 12 36 26 58""",
    "orange": """
        body main oval 0 10 96 104; - dark oval 42 8 58 18; leaf green poly 50 12 74 -6 92 2 72 14
        - dark oval 30 40 34 44
        - dark oval 60 50 64 54; - dark oval 44 74 48 78; - dark oval 70 72 74 76; - light oval 16 26 34 44
        - dark oval 22 64 26 68""",
    "sandwich": """
        - main poly 0 70 120 70 120 86 110 92 10 92 0 86
        - green poly -4 62 8 70 24 62 40 70 56 62 72 70 88 62 104 70 124 60 122 54 -2 54
        - red box 4 48 116 56; - yellow poly 0 42 120 42 120 50 96 50 84 60 72 50 0 50
        body main poly 0 42 4 22 24 8 96 8 116 22 120 42
        - light oval 24 16 44 22; - light oval 60 14 80 20""",
    "broccoli": """
        stem lime poly 36 56 64 56 58 104 42 104; stem lime line 46 80 22 54 10; stem lime line 54 80 78 54 10
        - dark oval 0 30 36 64; - main oval 10 10 46 48; - dark oval 64 30 100 64; - main oval 54 10 90 48
        head main oval 30 0 70 40; - main oval 32 28 68 62
        - light oval 20 18 30 26; - light oval 44 8 54 16; - light oval 68 18 78 26; - dark oval 40 40 50 48""",
    "carrot": """
        leaf green poly 84 26 96 -8 104 18; leaf green poly 88 28 122 -2 112 24
        leaf green poly 90 34 126 28 104 42
        body main poly 0 104 66 22 80 18 92 24 96 36 90 48; - dark line 46 48 58 60 3; - dark line 62 34 70 44 3
        - dark line 28 72 38 80 3""",
    "hot dog": """
        - main oval 0 26 130 70; body sausage oval -8 20 138 54; - main poly 4 46 126 46 122 66 104 74 26 74 8 66
        - yellow line 10 34 26 26 5; - yellow line 26 26 42 38 5; - yellow line 42 38 58 26 5
        - yellow line 58 26 74 38 5
        - yellow line 74 38 90 26 5; - yellow line 90 26 106 38 5; - yellow line 106 38 120 28 5""",
    "pizza": """
        - brown poly 0 14 50 0 100 14 96 28 4 28; body main poly 6 26 94 26 50 120; - red oval 24 32 44 50
        - red oval 56 30 76 48
        - red oval 42 58 60 76; - green oval 48 42 56 48; - green oval 34 54 41 60; - green oval 62 56 69 62
        - red oval 46 88 54 98""",
    "donut": """
        - tan oval 0 4 110 96; body main oval 4 2 106 84; - tan oval 36 30 74 58; - none oval 40 36 70 58
        - blue line 22 26 28 34 4; - red line 46 14 54 18 4; - yellow line 78 22 84 28 4
        - green line 88 44 90 54 4; - blue line 64 68 72 66 4
        - red line 18 52 24 58 4; - yellow line 38 66 46 70 4""",
    "cake": """
        - gray oval -10 84 130 104; body main box 4 42 116 92
        - white poly 4 36 116 36 116 56 104 64 92 54 80 66 68 54 56 66 44 54 32 66 20 54 4 62
        - white oval 4 28 116 46; - red box 30 8 36 34; - blue box 57 6 63 34; - green box 84 8 90 34
        - yellow oval 29 -4 37 9; - yellow oval 56 -6 64 7; - yellow oval 83 -4 91 9""",
}
