"""The silhouettes of food, tableware, furniture, machines, clothes and solids; the format is that of `shapes_alive`."""

INDOORS: dict[str, str] = {
    "backpack": """
        strap dark line 8 30 -4 80 8; strap dark line 76 30 88 80 8; - none oval 34 0 50 12
        - dark oval 28 -6 56 24; - none oval 34 0 50 18; body main poly 10 20 22 8 62 8 74 20 78 100 6 100
        - dark poly 10 22 74 22 72 44 12 44; - light box 18 56 66 90; - dark box 18 60 66 64
        - yellow box 38 60 46 72""",
    "umbrella": """
        handle brown line 60 40 60 112 4; handle brown line 60 112 72 116 4; handle brown line 73 117 73 106 4
        - black line 60 -4 60 8 3
        head main poly 0 56 6 34 22 14 44 4 60 2 76 4 98 14 114 34 120 56 100 50 80 56 60 50 40 56 20 50
        - dark poly 40 56 46 26 60 2 74 26 80 56 60 50""",
    "handbag": """
        - dark oval 22 0 78 66; - none oval 30 9 70 66; body main poly 8 40 92 40 102 100 -2 100
        handle dark line 26 34 24 46 7; handle dark line 74 34 76 46 7; - dark poly 8 40 92 40 88 62 50 72 12 62
        - yellow oval 44 62 56 74""",
    "tie": """
        - white poly 0 0 26 8 40 14 54 8 80 0 66 26 40 16 14 26; head main poly 28 10 52 10 48 30 32 30
        body main poly 33 30 47 30 60 112 40 136 20 112
        - dark line 33 30 47 30 3""",
    "suitcase": """
        handle dark box 34 -8 40 16; handle dark box 68 -8 74 16; handle dark box 34 -12 74 -5
        body main box 4 12 104 88
        - dark box 20 12 26 88; - dark box 82 12 88 88; - yellow box 18 30 28 38; - yellow box 80 30 90 38
        wheel black oval 14 86 28 100; wheel black oval 80 86 94 100""",
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
    "potted plant": """
        - green line 50 80 50 40 4; head green poly 50 80 18 58 4 28 30 40; - green poly 50 80 30 36 34 4 50 34
        - lime poly 50 80 52 30 68 2 68 40
        - green poly 50 80 70 40 98 26 84 58; - lime poly 50 82 14 76 -2 56 28 60
        - lime poly 50 82 86 76 102 56 74 60
        pot main poly 20 84 80 84 72 132 28 132; - dark box 16 78 84 90""",
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
    "toilet": """
        tank main box 0 0 30 52; - dark box -3 -3 33 5; - silver box 22 10 32 15
        body main poly 4 52 84 52 78 76 56 88 54 112 16 112 14 84 4 72
        seat white oval 18 42 90 60; - dark oval 28 46 82 56; - dark box 12 108 58 116""",
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
    "sink": """
        - silver box 54 -2 62 40; tap silver poly 54 -2 58 -10 88 -10 94 0 94 14 86 14 84 -2
        - silver box 40 30 50 36; - silver box 68 30 78 36
        body main poly 0 38 124 38 116 64 96 80 28 80 8 64; - dark oval 6 34 118 52; - light oval 14 37 110 50
        - dark poly 46 80 78 80 74 124 50 124""",
    "refrigerator": """
        body main box 0 0 76 150; - dark box 0 50 76 54; handle dark box 8 16 14 44; handle dark box 8 62 14 100
        - white box 40 14 60 32; - red oval 44 10 50 16
        - yellow box 44 72 60 86; - black box 6 150 16 156; - black box 60 150 70 156""",
    "book": """
        - white poly 4 90 96 90 100 112 8 112; - dark poly 0 84 8 112 100 112 100 118 2 118 -6 100
        body main poly 0 0 88 0 96 92 0 92
        - dark box 0 0 10 92; - light box 24 18 74 26; - light box 24 34 74 40; - light box 34 56 64 76""",
    "clock": """
        body main oval 0 0 100 100; - white oval 10 10 90 90; - black box 48 13 52 22; - black box 48 78 52 87
        - black box 13 48 22 52; - black box 78 48 87 52
        hand black line 50 50 50 22 5; hand black line 50 50 72 60 5; - red oval 45 45 55 55""",
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
    "hair drier": """
        handle dark poly 26 44 48 44 56 104 36 108; body main oval 0 0 62 60; - main poly 30 4 92 12 92 46 30 56
        - black box 90 8 100 50
        - dark oval 12 14 42 44; - light oval 18 20 36 38; - red box 36 60 44 72; - black line 46 106 58 120 4
        - black line 58 120 80 116 4""",
    "toothbrush": """
        - white box 4 0 12 32; - sky box 12 0 18 32; head main box 16 -2 24 38
        handle main poly 16 36 24 36 30 70 28 146 22 150 16 146 14 70; - light box 18 80 26 120""",
    "plate": """
        body main oval 0 0 120 72; - dark oval 22 14 98 58; - light oval 25 16 95 54""",
    "shirt": """
        sleeve main poly 26 4 0 30 14 48 34 34; sleeve main poly 74 4 100 30 86 48 66 34
        body main poly 26 2 42 0 58 0 74 2 76 104 24 104
        - none oval 38 -10 62 10; - dark line 38 2 50 12 4; - dark line 62 2 50 12 4; - dark line 50 12 50 104 2
        - white oval 47 28 53 34; - white oval 47 50 53 56; - white oval 47 72 53 78""",
    "jacket": """
        sleeve main poly 22 6 0 30 -4 92 12 94 28 40; sleeve main poly 78 6 100 30 104 92 88 94 72 40
        body main poly 22 4 38 0 62 0 78 4 80 106 20 106
        - dark poly 38 0 50 34 32 40 26 4; - dark poly 62 0 50 34 68 40 74 4; - white poly 40 0 60 0 50 30
        - silver line 50 34 50 106 4; - dark box 26 70 42 75; - dark box 58 70 74 75
        - dark box -6 86 14 95; - dark box 86 86 106 95; - dark box 20 98 80 106""",
    "shoe": """
        body main poly 0 10 6 4 34 6 44 30 76 40 104 46 116 58 118 68 0 68
        sole white poly 0 68 118 68 120 78 114 82 0 82; - dark poly 0 10 6 4 34 6 36 12
        - white line 46 24 56 38 3; - white line 56 28 66 42 3; - white line 66 32 76 46 3
        - light poly 10 40 40 46 44 58 10 58; - dark line 90 44 88 66 2""",
    "pants": """
        leg main poly 10 14 46 14 44 136 4 136; leg main poly 46 14 82 14 88 136 48 136; body main box 10 4 82 44
        - dark box 10 0 82 10; - silver box 40 0 52 10
        - none poly 46 56 49 136 43 136; - dark line 46 10 46 50 2; - dark line 14 18 26 34 2
        - dark line 78 18 66 34 2""",
    "shorts": """
        leg main poly 8 12 50 12 47 76 -6 76; leg main poly 50 12 92 12 106 76 53 76; body main box 8 4 92 44
        - white box 8 0 92 11
        - none poly 50 50 54 76 46 76; - white line 50 8 42 28 3; - white line 50 8 58 28 3
        - dark box -6 68 47 76; - dark box 53 68 106 76""",
    "helmet": """
        strap black line 20 62 40 96 4; strap black line 72 62 42 96 4
        body main poly 0 62 2 36 16 14 40 2 64 4 88 18 100 42 104 62
        - dark poly 0 56 104 56 114 64 114 70 0 70; - dark poly 30 12 40 8 36 40 26 40
        - dark poly 48 8 58 8 56 40 46 40; - dark poly 66 12 76 18 76 40 66 40""",
    "hat": """
        brim dark oval 0 50 120 80; brim main oval 0 46 120 74
        body main poly 26 58 32 12 44 2 60 8 76 2 88 12 94 58; - black poly 27 48 93 48 94 60 26 60""",
    "table": """
        leg dark box 8 20 16 96; leg dark box 124 20 132 96; leg dark box 28 20 34 78; leg dark box 106 20 112 78
        top main poly 16 0 124 0 140 18 0 18; - dark box 0 18 140 26; - light poly 22 4 80 4 78 8 18 8""",
    "door": """
        - dark box -6 -6 76 140; body main box 0 0 70 140; - dark box 10 12 31 56; - dark box 39 12 60 56
        - dark box 10 72 31 126; - dark box 39 72 60 126
        - light box 13 15 31 56; - light box 42 15 60 56; - light box 13 75 31 126; - light box 42 75 60 126
        handle yellow oval 59 60 69 70""",
    "cube": """
        body main poly 0 26 64 26 64 96 0 96
        - light poly 0 26 28 0 92 0 64 26
        - dark poly 64 26 92 0 92 70 64 96""",
    "sphere": """
        body main oval 0 0 96 96
        - dark poly 92 40 90 66 70 90 40 95 64 84 82 62
        - light oval 20 16 44 38
        - white oval 26 20 36 30""",
    "cylinder": """
        body main box 0 14 80 90
        body main oval 0 74 80 106
        - dark poly 60 14 80 14 80 92 72 98 60 102
        - light oval 0 0 80 28""",
}
