"""Street furniture and structures; `people.py` explains the format."""

STREET: dict[str, str] = {
    "traffic light": """
        pole gray box 26 78 34 150; body main box 12 0 48 80; - dark box 12 0 48 4
        - red oval 19 8 41 28; - yellow oval 19 31 41 51; - green oval 19 54 41 74""",
    "fire hydrant": """
        - dark box 10 90 62 98; body main box 18 34 54 92; - dark box 12 30 60 38
        head main poly 18 30 22 14 32 8 40 8 50 14 54 30
        - dark box 32 0 40 10; - main box 4 48 20 64; - dark box 0 45 6 67; - main box 52 48 68 64
        - dark box 66 45 72 67
        - gray oval 27 48 45 66; - light line 24 40 24 88 4""",
    "stop sign": """
        pole gray box 46 60 54 150; - white poly 28 -4 72 -4 104 28 104 62 72 94 28 94 -4 62 -4 28
        head main poly 30 0 70 0 100 30 100 60 70 90 30 90 0 60 0 30
        - white box 14 34 30 56; - main box 19 38 30 42; - main box 14 47 25 51; - white box 34 34 50 39
        - white box 39 34 45 56
        - white oval 53 33 69 57; - main oval 57 38 65 52; - white box 73 34 88 56; - main box 78 47 90 56
        - main box 78 38 84 43""",
    "parking meter": """
        pole gray box 24 70 34 140; head main poly 8 14 14 4 24 0 34 0 44 4 50 14 50 64 40 74 18 74 8 64
        - white poly 14 20 20 10 38 10 44 20 44 36 14 36; - red line 29 34 36 16 3; - black box 26 46 32 58
        - dark box 14 62 44 66
        - gray box 14 136 44 142""",
    "bench": """
        back main box 4 6 126 16; back main box 4 22 126 32; - dark box 12 0 18 60; - dark box 112 0 118 60
        seat main poly 0 44 130 44 136 56 -6 56; leg dark box 8 56 16 92; leg dark box 114 56 122 92
        - dark line 0 40 20 40 5; - dark line 110 40 130 40 5""",
    "street light": """
        pole main box 14 12 24 170; - main poly 14 16 22 2 40 -4 84 -4 84 4 42 4 28 8 24 20
        head main poly 66 -8 110 -8 116 4 62 4; - yellow poly 66 4 112 4 106 16 72 16; - dark box 4 156 34 172""",
    "building": """
        roof dark poly -4 20 50 -6 104 20; body main box 0 20 100 150
        window sky box 10 32 28 52; window sky box 41 32 59 52; window sky box 72 32 90 52
        window sky box 10 64 28 84; window sky box 41 64 59 84; window sky box 72 64 90 84
        window sky box 10 96 28 116; window sky box 72 96 90 116; door brown box 40 108 60 150
        - yellow oval 54 128 58 132""",
    "sign": """
        pole gray box 54 60 62 120; - black box 0 0 116 64; head main box 5 5 111 59
        - black line 18 22 74 22 7; - black line 18 42 62 42 7; - black poly 80 16 104 32 80 48""",
    "pole": """
        - dark box 4 140 36 150; body main box 14 6 26 142; - dark oval 11 0 29 12; - gray box -4 20 44 25
        - gray box 2 34 38 39""",
    "fence": """
        body main box 0 30 130 38; body main box 0 66 130 74
        pole main poly 4 100 4 12 12 0 20 12 20 100; pole main poly 30 100 30 12 38 0 46 12 46 100
        pole main poly 56 100 56 12 64 0 72 12 72 100; pole main poly 82 100 82 12 90 0 98 12 98 100
        pole main poly 108 100 108 12 116 0 124 12 124 100""",
    "wall": """
        body main box 0 0 130 80; - light line 0 20 130 20 2.5; - light line 0 40 130 40 2.5
        - light line 0 60 130 60 2.5
        - light line 26 0 26 20 2.5; - light line 66 0 66 20 2.5; - light line 106 0 106 20 2.5
        - light line 46 20 46 40 2.5
        - light line 86 20 86 40 2.5; - light line 26 40 26 60 2.5; - light line 66 40 66 60 2.5
        - light line 106 40 106 60 2.5
        - light line 46 60 46 80 2.5; - light line 86 60 86 80 2.5; - light line 6 20 6 40 2.5
        - light line 126 20 126 40 2.5""",
}
