"""Tableware; `people.py` explains the format."""

TABLEWARE: dict[str, str] = {
    "bottle": """
        mouth dark box 16 0 30 12; - light box 18 12 28 34
        body main poly 18 30 28 30 30 42 42 56 42 132 4 132 4 56 16 42
        - white box 4 76 42 108; - dark box 10 88 36 94; - light box 8 58 12 74""",
    "wine glass": """
        head sky poly 2 0 68 0 66 34 56 54 40 62 30 62 14 54 4 34
        - main poly 4 22 66 22 64 36 55 52 40 60 30 60 15 52 6 36
        stem sky box 32 60 38 112; foot sky oval 10 108 60 122; - white line 14 6 18 44 3""",
    "cup": """
        - main oval 60 20 98 66; - none oval 69 30 89 56; body main poly 0 6 74 6 68 86 60 92 14 92 6 86
        - dark oval 0 0 74 14
        handle main box 64 26 72 32; - brown oval 5 3 69 12; - light line 10 22 14 76 5""",
    "fork": """
        head main box 6 0 11 40; head main box 17 0 22 40; head main box 28 0 33 40; head main box 39 0 44 40
        - main poly 6 36 44 36 38 56 30 62 20 62 12 56; handle main poly 21 60 29 60 32 140 25 144 18 140""",
    "knife": """
        blade silver poly 8 84 8 20 14 6 26 0 30 84; - white poly 12 80 12 24 16 14 17 80
        handle main poly 8 84 30 84 32 140 20 146 7 140
        - light oval 16 98 22 104; - light oval 16 120 22 126""",
    "spoon": """
        head main oval 0 0 44 58; - dark oval 8 8 36 50; - light oval 12 12 24 34
        handle main poly 18 56 26 56 31 140 22 146 13 140""",
    "bowl": """
        body main poly 0 16 120 16 112 46 92 68 76 76 44 76 28 68 8 46; - dark box 40 74 80 82
        - dark oval 0 4 120 30; - light oval 8 8 112 26""",
    "plate": """
        body main oval 0 0 120 72; - dark oval 22 14 98 58; - light oval 25 16 95 54""",
}
