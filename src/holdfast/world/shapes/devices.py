"""Machines and devices; `people.py` explains the format."""

DEVICES: dict[str, str] = {
    "tv": """
        - dark box 0 0 140 86; - main box 2 2 138 84; screen screen box 8 8 132 78; - sky poly 8 8 60 8 26 78 8 78
        foot dark poly 60 86 80 86 84 98 56 98; foot dark box 36 96 104 102""",
    "laptop": """
        - main box 16 0 124 72; screen screen box 22 6 118 66; - sky box 30 14 70 20; - white box 30 28 100 32
        - white box 30 38 90 42; - white box 30 48 96 52
        body main poly 16 72 124 72 140 98 0 98; - dark poly 26 76 114 76 120 86 20 86
        - light poly 54 89 86 89 88 96 52 96""",
    "mouse": """
        body main oval 0 10 60 100; - main box 0 44 60 70; - dark line 30 12 30 48 3; - dark line 2 48 58 48 3
        - gray box 26 24 34 40
        - black line 30 12 30 0 3; - black line 30 0 46 -12 3; - black line 46 -12 40 -24 3""",
    "remote": """
        body main poly 4 0 36 0 40 6 38 130 34 134 6 134 2 130 0 6; - red oval 14 8 26 20
        - white oval 6 30 14 38; - white oval 16 30 24 38; - white oval 26 30 34 38; - white oval 6 44 14 52
        - white oval 16 44 24 52
        - white oval 26 44 34 52; - gray oval 6 62 34 90; - dark oval 14 70 26 82; - white box 8 100 15 118
        - white box 25 100 32 118""",
    "keyboard": """
        body main poly 6 0 154 0 160 54 0 54; - light box 12 6 24 14; - light box 28 6 40 14
        - light box 44 6 56 14; - light box 60 6 72 14
        - light box 76 6 88 14; - light box 92 6 104 14; - light box 108 6 120 14; - light box 124 6 148 14
        - light box 10 19 28 27
        - light box 32 19 44 27; - light box 48 19 60 27; - light box 64 19 76 27; - light box 80 19 92 27
        - light box 96 19 108 27
        - light box 112 19 124 27; - light box 128 19 150 27; - light box 9 32 22 40; - light box 26 32 38 40
        - light box 42 32 54 40
        - light box 58 32 70 40; - light box 74 32 86 40; - light box 90 32 102 40; - light box 106 32 118 40
        - light box 122 32 151 40
        - light box 34 44 112 51; - light box 8 44 28 51; - light box 120 44 152 51""",
    "cell phone": """
        body main poly 4 0 66 0 70 4 70 130 66 134 4 134 0 130 0 4; screen screen box 6 14 64 112
        - black box 26 5 44 9; - gray oval 28 116 42 130
        - red box 12 22 26 36; - yellow box 29 22 43 36; - green box 46 22 60 36; - sky box 12 42 26 56
        - white box 29 42 43 56; - orange box 46 42 60 56""",
    "microwave": """
        body main box 0 0 140 80; - dark box 4 4 104 76; screen screen box 12 12 92 68; - yellow oval 34 44 70 62
        - light box 96 12 101 68
        - green box 110 10 134 20; - dark oval 113 28 121 36; - dark oval 124 28 132 36; - dark oval 113 42 121 50
        - dark oval 124 42 132 50
        - dark box 112 58 133 70; - black box 8 80 22 86; - black box 118 80 132 86""",
    "oven": """
        body main box 0 0 100 112; - dark box 0 0 100 24; - red oval 8 6 20 18; - light oval 30 6 42 18
        - light oval 58 6 70 18; - red oval 80 6 92 18
        - silver box 12 32 88 38; screen screen box 14 46 86 86; - orange box 20 76 80 82; - dark box 0 94 100 98
        - black box 4 112 16 118; - black box 84 112 96 118
        - black box 8 -5 40 0; - black box 60 -5 92 0""",
    "toaster": """
        - tan poly 18 30 18 4 26 -4 46 -4 52 4 52 30; - tan poly 60 30 60 4 68 -4 88 -4 94 4 94 30
        body main poly 0 40 8 24 104 24 112 40 112 88 0 88
        - black box 14 24 98 29; - black box 112 44 122 52; - silver box 12 44 100 50; - black oval 84 60 100 76
        - black box 6 88 20 94; - black box 92 88 106 94""",
    "refrigerator": """
        body main box 0 0 76 150; - dark box 0 50 76 54; handle dark box 8 16 14 44; handle dark box 8 62 14 100
        - white box 40 14 60 32; - red oval 44 10 50 16
        - yellow box 44 72 60 86; - black box 6 150 16 156; - black box 60 150 70 156""",
    "hair drier": """
        handle dark poly 26 44 48 44 56 104 36 108; body main oval 0 0 62 60; - main poly 30 4 92 12 92 46 30 56
        - black box 90 8 100 50
        - dark oval 12 14 42 44; - light oval 18 20 36 38; - red box 36 60 44 72; - black line 46 106 58 120 4
        - black line 58 120 80 116 4""",
    "clock": """
        body main oval 0 0 100 100; - white oval 10 10 90 90; - black box 48 13 52 22; - black box 48 78 52 87
        - black box 13 48 22 52; - black box 78 48 87 52
        hand black line 50 50 50 22 5; hand black line 50 50 72 60 5; - red oval 45 45 55 55""",
    "microphone": """
        head silver oval 4 0 56 52; - gray line 12 10 48 44 2; - gray line 6 24 34 50 2; - gray line 26 3 54 28 2
        - gray line 48 10 12 44 2; - gray line 54 24 26 50 2; - gray line 34 3 6 28 2
        - black poly 6 40 54 40 50 52 10 52
        body main poly 12 52 48 52 40 138 20 138; - light box 22 56 27 130; - red box 26 66 36 78
        - black line 30 138 30 150 5; - black line 30 150 52 158 5""",
}
