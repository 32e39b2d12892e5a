"""Sports gear; `people.py` explains the format."""

SPORTS: dict[str, str] = {
    "frisbee": """
        body main oval 0 0 100 56; - dark oval 10 5 90 42; - main oval 16 8 84 38; - light oval 34 15 66 30""",
    "skis": """
        body main poly 10 4 18 0 24 6 22 120 12 120; body main poly 36 6 42 0 50 4 48 120 38 120
        - black box 10 62 24 76; - black box 36 62 50 76; - gray line 66 4 58 118 2.5; - gray line 74 4 82 118 2.5
        - black line 66 0 66 12 5; - black line 74 0 74 12 5; - black oval 53 104 65 110
        - black oval 76 104 88 110""",
    "snowboard": """
        body main poly 0 10 8 0 20 2 34 10 110 10 124 2 136 0 144 10 134 22 110 26 34 26 10 22
        - black box 38 4 50 28; - black box 94 4 106 28; - light box 62 15 82 21""",
    "sports ball": """
        body main oval 0 0 100 100; - black poly 50 34 66 46 60 64 40 64 34 46; - black line 50 34 50 2 4
        - black line 66 46 96 36 4; - black line 60 64 80 90 4; - black line 40 64 20 90 4
        - black line 34 46 4 36 4
        - light oval 20 14 32 24""",
    "kite": """
        tail dark line 40 100 52 120 2.5; tail dark line 52 120 36 140 2.5; tail dark line 36 140 50 160 2.5
        - red poly 42 112 60 106 58 122; - yellow poly 30 134 46 138 34 150; - blue poly 42 152 60 150 56 164
        body main poly 40 0 80 40 40 100 0 40; - dark poly 40 0 80 40 40 40; - dark poly 40 40 40 100 0 40""",
    "baseball bat": """
        body main poly 40 62 84 2 94 0 102 6 102 16 96 24 48 72; handle dark poly 42 60 50 70 16 104 8 96
        - black line 4 92 20 108 8""",
    "baseball glove": """
        - main oval 0 34 30 76; - main oval 16 2 38 56; - main oval 36 -4 56 54; - main oval 54 0 74 56
        - main oval 70 12 90 60
        body main oval 12 34 86 104; - dark oval 30 48 66 84; - dark line 18 36 34 60 3
        - dark line 37 30 40 52 2.5
        - dark line 55 30 56 52 2.5; - dark line 72 34 68 56 2.5; - white oval 38 54 60 76
        - red line 42 58 56 72 2; - dark box 26 98 74 108""",
    "skateboard": """
        body main poly 0 0 8 0 20 10 110 10 122 0 130 0 112 20 18 20; - dark box 18 15 112 20
        wheel black oval 24 18 44 38; wheel black oval 86 18 106 38; - white oval 30 24 38 32
        - white oval 92 24 100 32""",
    "surfboard": """
        body main poly 20 0 32 18 38 50 38 90 32 120 24 134 16 134 8 120 2 90 2 50 8 18
        - light poly 18 8 22 8 22 130 18 130; - black poly 16 118 24 118 20 130; - dark box 3 62 37 70""",
    "tennis racket": """
        - main oval 0 0 60 76; - none oval 7 7 53 69; - white line 16 6 16 70 2; - white line 26 4 26 72 2
        - white line 36 4 36 72 2
        - white line 45 6 45 70 2; - white line 4 20 56 20 2; - white line 2 33 58 33 2; - white line 2 46 58 46 2
        - white line 6 59 54 59 2
        head main line 20 70 28 92 5; - main line 40 70 32 92 5; handle dark box 24 88 36 136
        - black box 22 130 38 140""",
    "basketball": """
        body main oval 0 0 100 100; - black line 50 0 50 100 4; - black line 0 50 100 50 4
        - black line 16 14 32 34 4; - black line 32 34 36 50 4; - black line 36 50 32 66 4; - black line 32 66 16 86 4
        - black line 84 14 68 34 4; - black line 68 34 64 50 4; - black line 64 50 68 66 4; - black line 68 66 84 86 4
        - light oval 20 22 30 30""",
    "paddle": """
        handle tan poly 34 78 50 78 54 130 30 130; - brown line 36 84 34 128 2; head main oval 0 0 84 84
        - dark poly 18 72 66 72 52 88 32 88; - white oval 84 50 108 74; - light oval 14 16 30 34""",
}
