"""The silhouettes of vehicles, street furniture, sports gear, plants, structures; the format is `shapes_alive`'s."""

OUTDOORS: dict[str, str] = {
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
}
