"""Vehicles; `people.py` explains the format."""

VEHICLES: dict[str, str] = {
    "bicycle": """
        wheel black oval 0 46 52 98; - none oval 6 52 46 92; wheel black oval 78 46 130 98
        - none oval 84 52 124 92
        - gray line 6 72 46 72 1.5; - gray line 26 52 26 92 1.5; - gray line 84 72 124 72 1.5
        - gray line 104 52 104 92 1.5
        body main line 26 72 44 36 6; - main line 44 36 94 36 6; - main line 42 32 60 74 6
        - main line 60 74 94 36 6
        - main line 26 72 60 74 6; - main line 104 72 90 24 6; seat black line 30 27 54 27 8
        head black line 86 22 106 18 6; - black oval 54 68 66 80""",
    "motorcycle": """
        wheel black oval 0 44 50 94; - gray oval 14 58 36 80; wheel black oval 88 44 138 94
        - gray oval 102 58 124 80
        - gray line 112 68 92 16 6; body main poly 24 44 40 36 88 30 98 46 92 72 40 76
        - gray oval 48 52 82 84; seat black poly 10 34 26 28 60 34 56 44 20 44
        - main poly 58 22 84 18 92 36 62 42
        head black line 78 14 98 10 5; - yellow oval 94 18 108 34; - gray line 8 84 50 82 7""",
    "car": """
        body main poly 0 56 4 42 26 38 44 12 92 12 112 38 136 42 140 56 140 74 0 74
        - sky poly 34 38 48 18 66 18 66 38; - sky poly 72 38 72 18 89 18 104 38
        wheel black oval 14 56 46 90; - gray oval 22 65 38 81; wheel black oval 94 56 126 90
        - gray oval 102 65 118 81
        mirror dark oval 100 32 110 42; - yellow oval 130 46 140 56; - dark line 69 40 69 68 2""",
    "airplane": """
        tail main poly 4 36 0 6 14 6 34 36; body main poly 4 34 110 34 128 42 132 50 124 58 24 58 6 46
        head dark poly 110 34 128 42 132 50 118 48 108 42; wing dark poly 48 46 80 46 40 92 26 92
        - dark poly 58 34 82 34 64 4 52 4; engine gray oval 46 62 72 76; tail dark poly 4 40 24 42 6 58 -4 58
        - sky oval 40 38 46 44; - sky oval 54 38 60 44; - sky oval 68 38 74 44; - sky oval 82 38 88 44
        - sky oval 96 38 102 44""",
    "bus": """
        body main poly 2 4 8 0 148 0 154 6 156 40 156 80 0 80 0 8
        window sky box 8 12 32 38; window sky box 36 12 60 38; window sky box 64 12 88 38
        window sky box 92 12 116 38
        - dark box 120 12 138 80; - sky box 122 16 136 50; - sky poly 142 12 154 12 155 44 142 44
        - white box 0 50 118 54; wheel black oval 18 66 46 94; - gray oval 26 74 38 86
        wheel black oval 90 66 118 94; - gray oval 98 74 110 86; - yellow oval 148 62 156 70""",
    "train": """
        - gray box 0 96 186 100; body main poly 0 22 130 22 158 30 176 56 182 84 0 84; - gray box 0 16 120 22
        window sky box 6 34 26 54; window sky box 32 34 52 54; window sky box 70 34 90 54
        window sky box 96 34 116 54
        - dark box 58 22 63 84; - sky poly 132 34 152 36 164 56 132 56; - white box 0 64 172 69
        - yellow oval 168 70 180 80
        wheel black oval 8 80 26 98; wheel black oval 34 80 52 98; wheel black oval 74 80 92 98
        wheel black oval 100 80 118 98
        wheel black oval 140 80 158 98""",
    "truck": """
        body main box 0 0 96 74; - light box 6 6 90 12; cabin dark poly 100 22 126 22 142 48 150 52 150 78 100 78
        - sky poly 108 28 124 28 136 48 108 48; - black box 0 74 150 80; - yellow oval 142 58 151 67
        wheel black oval 10 66 40 96; - gray oval 19 75 31 87; wheel black oval 48 66 78 96
        - gray oval 57 75 69 87
        wheel black oval 108 66 138 96; - gray oval 117 75 129 87""",
    "boat": """
        - brown line 62 0 62 72 5; sail white poly 66 4 66 64 116 64; - light poly 58 12 58 64 22 64
        body main poly 0 70 130 70 112 98 18 98; - dark poly 0 70 130 70 126 77 4 77""",
    "jeep": """
        - black box 14 -6 92 -1; - black box 22 -6 26 4; - black box 78 -6 82 4
        body main poly 0 80 0 30 8 4 96 4 116 36 146 42 152 54 152 80
        - sky poly 8 34 14 10 38 10 38 34; - sky box 43 10 70 34; - sky poly 75 10 93 10 108 34 75 34
        - dark box 0 74 152 84; - black oval -8 30 6 66; wheel black oval 14 60 52 98; - gray oval 25 71 41 87
        wheel black oval 98 60 136 98; - gray oval 109 71 125 87; mirror dark oval 104 28 116 40
        - yellow oval 142 48 152 58; - dark line 41 36 41 74 2.5; - dark line 73 36 73 74 2.5""",
    "rowboat": """
        oar brown line 24 14 58 70 5; oar brown line 106 14 76 70 5; - dark poly -6 38 24 46 108 46 138 34 112 60 18 60
        - tan box 44 48 56 62; - tan box 78 48 90 62; body main poly -6 38 20 54 112 54 138 34 118 88 18 88
        - light poly -6 38 20 54 112 54 138 34 134 44 112 62 20 62 -2 48; - brown line 58 66 74 96 5
        - brown poly 68 88 78 86 88 108 78 112""",
    "racing car": """
        wing dark box -10 20 26 30; - dark line 8 30 14 50 5
        body main poly 0 48 44 34 64 34 72 50 96 50 108 46 172 64 174 72 0 72
        - black poly 68 50 96 50 100 44 104 52; - white oval 74 32 92 50; - black box 84 38 93 44
        wing dark poly 156 70 184 70 184 80 150 80
        wheel black oval 4 44 44 84; - gray oval 16 56 32 72; wheel black oval 118 48 154 84; - gray oval 128 58 144 74
        - light line 22 40 66 40 4; - white oval 50 52 66 66""",
}
