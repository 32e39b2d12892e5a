"""Small household things; `people.py` explains the format."""

THINGS: dict[str, str] = {
    "book": """
        - white poly 4 90 96 90 100 112 8 112; - dark poly 0 84 8 112 100 112 100 118 2 118 -6 100
        body main poly 0 0 88 0 96 92 0 92
        - dark box 0 0 10 92; - light box 24 18 74 26; - light box 24 34 74 40; - light box 34 56 64 76""",
    "vase": """
        - green line 36 20 28 -20 3; - green line 36 20 46 -26 3; - red oval 18 -36 38 -14
        - yellow oval 38 -42 58 -20
        mouth dark oval 18 12 54 24; body main poly 22 18 50 18 48 34 66 60 68 84 54 118 18 118 4 84 6 60 24 34
        - light oval 14 60 24 90""",
    "scissors": """
        blade silver poly 44 64 52 58 88 0 92 4 60 70; blade silver poly 56 64 48 58 12 0 8 4 40 70
        - main oval 4 68 44 116; - none oval 13 78 35 106
        - main oval 56 68 96 116; - none oval 65 78 87 106; handle main line 42 62 36 78 8
        handle main line 58 62 64 78 8; - black oval 45 55 55 65""",
    "teddy bear": """
        leg main oval 0 76 40 114; leg main oval 60 76 100 114; - light oval 6 84 26 106
        - light oval 74 84 94 106; body main oval 18 44 82 106
        arm main oval -4 46 30 74; arm main oval 70 46 104 74; - main oval 18 -4 42 20; - main oval 58 -4 82 20
        - light oval 24 2 36 14; - light oval 64 2 76 14
        head main oval 20 0 80 54; - light oval 36 26 64 48; - black oval 44 28 56 36; - black oval 34 16 42 24
        - black oval 58 16 66 24; - light oval 34 58 66 94
        - red poly 50 54 34 48 34 62; - red poly 50 54 66 48 66 62""",
    "toothbrush": """
        - white box 4 0 12 32; - sky box 12 0 18 32; head main box 16 -2 24 38
        handle main poly 16 36 24 36 30 70 28 146 22 150 16 146 14 70; - light box 18 80 26 120""",
    "guitar": """
        body main oval 0 92 84 164; - main oval 8 58 76 120; - dark oval 6 98 78 160; - main oval 9 100 75 156
        - main oval 14 64 70 118; - black oval 30 86 54 110; neck brown box 36 -24 48 92; - black box 26 134 58 141
        head dark poly 30 -58 54 -58 52 -22 32 -22; - silver oval 22 -56 30 -49; - silver oval 22 -42 30 -35
        - silver oval 54 -56 62 -49; - silver oval 54 -42 62 -35; - white line 39 -50 39 136 1.5
        - white line 42 -50 42 136 1.5; - white line 45 -50 45 136 1.5""",
    "basket": """
        handle main poly 14 52 16 39 20 27 27 17 37 9 48 4 60 2 72 4 83 9 93 17 100 27 104 39 106 52 99 52 98 41
            94 31 88 22 79 16 70 11 60 10 50 11 40 16 32 22 26 31 22 41 21 52
        body main poly 4 50 116 50 102 108 18 108; - dark box 0 46 120 56; - dark line 8 66 112 66 3
        - dark line 11 80 109 80 3; - dark line 14 94 106 94 3; - light line 24 56 30 108 3; - light line 42 56 45 108 3
        - light line 60 56 60 108 3; - light line 78 56 75 108 3; - light line 96 56 90 108 3""",
    "cigarette": """
        body main poly 0 92 6 80 82 60 86 72; - orange poly 0 92 6 80 30 73 34 86; - red poly 82 60 92 58 94 70 86 72
        - gray line 92 54 86 40 3; - gray line 86 40 96 26 3; - gray line 96 26 88 10 3; - gray line 88 10 96 -4 3""",
}
