"""The silhouettes of what only Objects365, COBJ, PartImageNet and CIFAR name; the format is `shapes_alive`'s.

The animals here are drawn in one pose: no verb of the world is theirs.
"""

MORE: dict[str, str] = {
    "fish": """
        tail dark poly 24 50 -4 20 4 50 -4 80; fin dark poly 40 30 54 6 86 14 80 32; fin dark poly 50 72 60 94 76 72
        body main oval 14 22 106 78; head light poly 82 27 96 36 106 50 96 64 82 73 76 50
        - light oval 28 38 38 48; - light oval 42 36 52 46; - light oval 56 36 66 46; - light oval 34 54 44 64
        - light oval 48 56 58 66; - dark poly 56 48 72 42 70 60; - white oval 84 37 95 48; - black oval 88 40 94 47
        - dark line 95 58 104 55 2.5""",
    "shark": """
        tail dark poly 20 48 -8 4 12 20 26 46; tail dark poly 20 48 -4 78 8 72 26 54
        fin dark poly 62 32 76 0 92 32; fin dark poly 76 60 62 88 98 64
        body main poly 12 46 44 33 92 28 130 36 152 48 134 62 96 67 42 60
        head main poly 116 33 130 36 152 48 134 62 118 65
        - white poly 34 56 96 58 140 54 134 62 96 67 42 60; - dark line 100 38 97 54 2.5; - dark line 106 38 103 54 2.5
        - dark line 112 39 109 54 2.5; - white oval 126 38 134 46; - black oval 129 39 134 45
        - black poly 128 56 148 50 136 62; - white poly 131 55 134 59 136 54; - white poly 138 53 140 57 143 52""",
    "snake": """
        body main poly -1 71 4 76 9 81 15 82 22 79 28 74 33 69 36 66 38 68 43 74 48 81 54 87 65 88 73 82 78 74 83 67
            85 64 90 73 106 83 112 62 118 46 122 32 110 28 106 42 100 58 96 68 89 50 78 51 71 58 66 67 61 75 58 72
            53 66 48 59 40 54 31 54 24 60 20 66 16 72 11 76 6 73
        - light line 22 70 28 74 4; - light line 31 59 36 64 4; - light line 44 64 49 60 4; - light line 54 78 59 74 4
        - light line 66 80 72 76 4; - light line 74 66 79 70 4; - light line 82 54 86 60 4; - light line 98 66 105 71 4
        - light line 105 46 113 50 4; - red line 132 24 144 26 2; - red line 144 26 150 22 2; - red line 144 26 150 30 2
        head main oval 104 12 134 36; - white oval 118 15 126 23; - black oval 121 16 126 22""",
    "lizard": """
        tail main poly 34 58 6 64 -30 58 -56 40 -28 48 2 50 34 36
        leg dark poly 32 50 40 56 30 70 34 80 16 80 22 70; leg dark poly 46 54 56 50 60 68 66 80 48 80 52 70
        leg dark poly 76 52 84 56 76 70 80 80 62 80 68 68; leg dark poly 88 54 98 50 104 68 110 80 92 80 96 70
        - dark poly 30 36 38 26 44 34 52 24 58 32 66 23 72 32 80 25 86 34 94 28 98 38
        body main oval 20 30 104 62; head main poly 92 38 106 28 124 32 140 42 138 50 118 56 98 54
        - white oval 112 32 122 42; - black oval 116 33 122 41; - dark line 118 49 138 46 2.5; - light oval 40 40 50 48
        - light oval 58 38 68 46; - light oval 76 40 86 48; - light oval 48 50 56 56; - light oval 68 50 76 56""",
    "turtle": """
        tail light poly 12 66 -8 76 16 76; leg light oval 14 62 36 94; leg light oval 72 62 94 94
        - light oval 34 64 52 88; - light oval 56 64 72 88; - light line 84 64 108 52 14; head light oval 96 34 128 62
        body main poly 4 70 8 48 24 28 50 18 76 28 92 48 98 70; - dark poly 38 30 62 30 70 46 58 60 42 60 30 46
        - dark line 30 46 10 50 3; - dark line 70 46 90 50 3; - dark line 42 60 36 70 3; - dark line 58 60 64 70 3
        - dark line 38 30 34 24 3; - dark line 62 30 66 24 3; - dark poly 0 68 102 68 102 76 0 76
        - black oval 114 42 120 49; - dark line 116 56 127 54 2""",
    "monkey": """
        tail main poly 71 95 81 91 91 84 99 74 104 62 107 49 106 37 102 29 96 24 92 29 97 33 100 39 101 48 98 60 94 71
            87 80 78 85 69 89
        leg main line 38 86 30 114 12; leg main line 62 86 70 114 12; - light oval 16 108 38 120
        - light oval 62 108 84 120
        body main oval 26 46 74 102; - light oval 36 60 64 96
        arm main line 30 58 8 86 10; arm main line 70 58 92 86 10; - light oval 0 82 14 96; - light oval 86 82 100 96
        - light oval 8 14 32 40; - light oval 68 14 92 40; head main oval 20 0 80 54; - light oval 30 10 52 36
        - light oval 48 10 70 36; - light oval 28 28 72 54; - black oval 36 18 46 29; - black oval 54 18 64 29
        - black oval 44 33 48 37; - black oval 52 33 56 37; - dark line 38 45 62 45 3""",
    "boot": """
        body main poly 16 0 58 0 60 54 92 64 110 76 114 92 12 92; - dark box 14 -4 60 12
        sole black poly 10 92 116 92 116 100 46 100 44 106 10 106; - white line 48 24 62 20 3
        - white line 48 36 62 32 3
        - white line 50 48 64 44 3; - dark poly 78 60 92 64 110 76 114 92 84 92; - light line 24 14 24 82 4""",
    "lamp": """
        - yellow poly 8 50 92 50 104 70 -4 70; head main poly 28 0 72 0 98 52 2 52; - light poly 34 4 46 4 34 48 18 48
        pole silver box 46 52 54 104; - silver oval 40 66 60 86; foot dark poly 20 116 26 104 74 104 80 116
        - silver line 66 52 66 74 2; - silver oval 63 72 69 78""",
    "glasses": """
        arm main line 4 34 24 4 6; - main line 24 4 38 6 6; arm main line 122 34 142 4 6; - main line 142 4 156 6 6
        - main oval 0 18 56 74; lens sky oval 8 26 48 66; - main oval 70 18 126 74; lens sky oval 78 26 118 66
        - main poly 50 40 62 34 76 40 76 48 62 42 50 48; - white poly 16 40 26 30 32 32 18 50
        - white poly 86 40 96 30 102 32 88 50""",
    "street light": """
        pole main box 14 12 24 170; - main poly 14 16 22 2 40 -4 84 -4 84 4 42 4 28 8 24 20
        head main poly 66 -8 110 -8 116 4 62 4; - yellow poly 66 4 112 4 106 16 72 16; - dark box 4 156 34 172""",
    "bracelet": """
        body main oval 0 10 110 90; - none oval 14 24 96 76
        - light oval 94 41 112 59; - dark oval 89 56 107 74; - light oval 76 68 94 86; - dark oval 57 74 75 92
        - light oval 35 74 53 92; - dark oval 16 68 34 86; - light oval 3 56 21 74; - dark oval -2 41 16 59
        - light oval 3 26 21 44; - dark oval 16 14 34 32; - light oval 35 8 53 26; - dark oval 57 8 75 26
        - light oval 76 14 94 32; - dark oval 89 26 107 44""",
    "basketball": """
        body main oval 0 0 100 100; - black line 50 0 50 100 4; - black line 0 50 100 50 4
        - black line 16 14 32 34 4; - black line 32 34 36 50 4; - black line 36 50 32 66 4; - black line 32 66 16 86 4
        - black line 84 14 68 34 4; - black line 68 34 64 50 4; - black line 64 50 68 66 4; - black line 68 66 84 86 4
        - light oval 20 22 30 30""",
    "jeep": """
        - black box 14 -6 92 -1; - black box 22 -6 26 4; - black box 78 -6 82 4
        body main poly 0 80 0 30 8 4 96 4 116 36 146 42 152 54 152 80
        - sky poly 8 34 14 10 38 10 38 34; - sky box 43 10 70 34; - sky poly 75 10 93 10 108 34 75 34
        - dark box 0 74 152 84; - black oval -8 30 6 66; wheel black oval 14 60 52 98; - gray oval 25 71 41 87
        wheel black oval 98 60 136 98; - gray oval 109 71 125 87; mirror dark oval 104 28 116 40
        - yellow oval 142 48 152 58; - dark line 41 36 41 74 2.5; - dark line 73 36 73 74 2.5""",
    "guitar": """
        body main oval 0 92 84 164; - main oval 8 58 76 120; - dark oval 6 98 78 160; - main oval 9 100 75 156
        - main oval 14 64 70 118; - black oval 30 86 54 110; neck brown box 36 -24 48 92; - black box 26 134 58 141
        head dark poly 30 -58 54 -58 52 -22 32 -22; - silver oval 22 -56 30 -49; - silver oval 22 -42 30 -35
        - silver oval 54 -56 62 -49; - silver oval 54 -42 62 -35; - white line 39 -50 39 136 1.5
        - white line 42 -50 42 136 1.5; - white line 45 -50 45 136 1.5""",
    "microphone": """
        head silver oval 4 0 56 52; - gray line 12 10 48 44 2; - gray line 6 24 34 50 2; - gray line 26 3 54 28 2
        - gray line 48 10 12 44 2; - gray line 54 24 26 50 2; - gray line 34 3 6 28 2
        - black poly 6 40 54 40 50 52 10 52
        body main poly 12 52 48 52 40 138 20 138; - light box 22 56 27 130; - red box 26 66 36 78
        - black line 30 138 30 150 5; - black line 30 150 52 158 5""",
    "necklace": """
        - main oval 2 0 10 8; - dark oval 1 10 10 19; - dark oval 3 21 12 30; - main oval 6 36 16 46
        - dark oval 13 48 23 59
        - main oval 21 58 32 69; - dark oval 31 65 42 76; - main oval 42 69 54 80; - dark oval 54 70 66 82
        - main oval 66 69 78 80; - dark oval 78 65 89 76; - main oval 88 58 99 69; - dark oval 97 48 107 59
        - main oval 104 36 114 46; - dark oval 108 21 117 30; - dark oval 110 10 119 19; - main oval 110 0 118 8
        - yellow oval 44 78 76 114; body main oval 49 83 71 109; - white oval 53 88 60 96""",
    "rowboat": """
        oar brown line 24 14 58 70 5; oar brown line 106 14 76 70 5; - dark poly -6 38 24 46 108 46 138 34 112 60 18 60
        - tan box 44 48 56 62; - tan box 78 48 90 62; body main poly -6 38 20 54 112 54 138 34 118 88 18 88
        - light poly -6 38 20 54 112 54 138 34 134 44 112 62 20 62 -2 48; - brown line 58 66 74 96 5
        - brown poly 68 88 78 86 88 108 78 112""",
    "desk": """
        leg main box 2 28 10 100; - dark box 10 34 92 62; drawer main box 90 28 146 100; - dark box 94 34 142 52
        - dark box 94 56 142 74; - dark box 94 78 142 96; - silver box 110 41 126 45; - silver box 110 63 126 67
        - silver box 110 85 126 89; top main poly 6 14 142 14 152 28 -4 28; - dark box -4 24 152 30
        - white poly 30 12 52 12 58 18 32 20; - red box 96 -2 104 14; - silver line 98 -12 99 0 2
        - blue line 102 -14 102 0 2""",
    "basket": """
        handle main poly 14 52 16 39 20 27 27 17 37 9 48 4 60 2 72 4 83 9 93 17 100 27 104 39 106 52 99 52 98 41
            94 31 88 22 79 16 70 11 60 10 50 11 40 16 32 22 26 31 22 41 21 52
        body main poly 4 50 116 50 102 108 18 108; - dark box 0 46 120 56; - dark line 8 66 112 66 3
        - dark line 11 80 109 80 3; - dark line 14 94 106 94 3; - light line 24 56 30 108 3; - light line 42 56 45 108 3
        - light line 60 56 60 108 3; - light line 78 56 75 108 3; - light line 96 56 90 108 3""",
    "paddle": """
        handle tan poly 34 78 50 78 54 130 30 130; - brown line 36 84 34 128 2; head main oval 0 0 84 84
        - dark poly 18 72 66 72 52 88 32 88; - white oval 84 50 108 74; - light oval 14 16 30 34""",
    "cigarette": """
        body main poly 0 92 6 80 82 60 86 72; - orange poly 0 92 6 80 30 73 34 86; - red poly 82 60 92 58 94 70 86 72
        - gray line 92 54 86 40 3; - gray line 86 40 96 26 3; - gray line 96 26 88 10 3; - gray line 88 10 96 -4 3""",
    "racing car": """
        wing dark box -10 20 26 30; - dark line 8 30 14 50 5
        body main poly 0 48 44 34 64 34 72 50 96 50 108 46 172 64 174 72 0 72
        - black poly 68 50 96 50 100 44 104 52; - white oval 74 32 92 50; - black box 84 38 93 44
        wing dark poly 156 70 184 70 184 80 150 80
        wheel black oval 4 44 44 84; - gray oval 16 56 32 72; wheel black oval 118 48 154 84; - gray oval 128 58 144 74
        - light line 22 40 66 40 4; - white oval 50 52 66 66""",
}
