"""Furniture and fixtures; `people.py` explains the format."""

FURNITURE: dict[str, str] = {
    "chair": """
        back main box 4 0 14 70; back main box 4 6 22 14; - main poly 4 0 16 0 16 62 4 62
        - dark poly 16 10 26 10 26 58 16 58
        seat main poly 2 58 66 58 74 70 2 70; leg dark box 4 70 12 124; leg dark box 62 70 70 124
        - dark box 10 92 64 98; leg dark box 22 70 28 112""",
    "couch": """
        back main poly 12 0 148 0 152 50 8 50; - dark line 80 2 80 48 3; seat light box 16 44 144 70
        - dark line 80 46 80 68 3
        arm main poly 0 28 10 24 20 28 20 86 0 86; arm main poly 140 28 150 24 160 28 160 86 140 86
        - main box 18 68 142 86
        - brown box 8 86 18 96; - brown box 142 86 152 96""",
    "bed": """
        head brown box 0 0 8 92; - brown box 152 34 160 92; leg brown box 0 84 8 100; leg brown box 152 84 160 100
        body main poly 8 50 152 50 152 84 8 84
        - white box 8 40 152 58; - white oval 10 24 52 50; - main poly 56 38 152 38 152 72 56 72
        - dark box 8 78 152 84""",
    "dining table": """
        - dark box 14 30 22 84; - dark box 118 30 126 84; leg dark poly 62 30 78 30 76 92 64 92
        - dark poly 48 98 56 88 84 88 92 98
        top main oval 0 8 140 46; - dark poly 2 30 30 44 70 48 110 44 138 30 136 38 108 50 70 54 32 50 4 38
        - white oval 46 14 94 32; - sky oval 54 17 86 29; - silver line 36 14 34 34 3
        - silver line 104 14 106 34 3""",
    "table": """
        leg dark box 8 20 16 96; leg dark box 124 20 132 96; leg dark box 28 20 34 78; leg dark box 106 20 112 78
        top main poly 16 0 124 0 140 18 0 18; - dark box 0 18 140 26; - light poly 22 4 80 4 78 8 18 8""",
    "desk": """
        leg main box 2 28 10 100; - dark box 10 34 92 62; drawer main box 90 28 146 100; - dark box 94 34 142 52
        - dark box 94 56 142 74; - dark box 94 78 142 96; - silver box 110 41 126 45; - silver box 110 63 126 67
        - silver box 110 85 126 89; top main poly 6 14 142 14 152 28 -4 28; - dark box -4 24 152 30
        - white poly 30 12 52 12 58 18 32 20; - red box 96 -2 104 14; - silver line 98 -12 99 0 2
        - blue line 102 -14 102 0 2""",
    "toilet": """
        tank main box 0 0 30 52; - dark box -3 -3 33 5; - silver box 22 10 32 15
        body main poly 4 52 84 52 78 76 56 88 54 112 16 112 14 84 4 72
        seat white oval 18 42 90 60; - dark oval 28 46 82 56; - dark box 12 108 58 116""",
    "sink": """
        - silver box 54 -2 62 40; tap silver poly 54 -2 58 -10 88 -10 94 0 94 14 86 14 84 -2
        - silver box 40 30 50 36; - silver box 68 30 78 36
        body main poly 0 38 124 38 116 64 96 80 28 80 8 64; - dark oval 6 34 118 52; - light oval 14 37 110 50
        - dark poly 46 80 78 80 74 124 50 124""",
    "door": """
        - dark box -6 -6 76 140; body main box 0 0 70 140; - dark box 10 12 31 56; - dark box 39 12 60 56
        - dark box 10 72 31 126; - dark box 39 72 60 126
        - light box 13 15 31 56; - light box 42 15 60 56; - light box 13 75 31 126; - light box 42 75 60 126
        handle yellow oval 59 60 69 70""",
    "lamp": """
        - yellow poly 8 50 92 50 104 70 -4 70; head main poly 28 0 72 0 98 52 2 52; - light poly 34 4 46 4 34 48 18 48
        pole silver box 46 52 54 104; - silver oval 40 66 60 86; foot dark poly 20 116 26 104 74 104 80 116
        - silver line 66 52 66 74 2; - silver oval 63 72 69 78""",
}
