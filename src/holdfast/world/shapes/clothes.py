"""Clothes, bags and jewellery; `people.py` explains the format."""

CLOTHES: dict[str, str] = {
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
    "boot": """
        body main poly 16 0 58 0 60 54 92 64 110 76 114 92 12 92; - dark box 14 -4 60 12
        sole black poly 10 92 116 92 116 100 46 100 44 106 10 106; - white line 48 24 62 20 3
        - white line 48 36 62 32 3
        - white line 50 48 64 44 3; - dark poly 78 60 92 64 110 76 114 92 84 92; - light line 24 14 24 82 4""",
    "glasses": """
        arm main line 4 34 24 4 6; - main line 24 4 38 6 6; arm main line 122 34 142 4 6; - main line 142 4 156 6 6
        - main oval 0 18 56 74; lens sky oval 8 26 48 66; - main oval 70 18 126 74; lens sky oval 78 26 118 66
        - main poly 50 40 62 34 76 40 76 48 62 42 50 48; - white poly 16 40 26 30 32 32 18 50
        - white poly 86 40 96 30 102 32 88 50""",
    "bracelet": """
        body main oval 0 10 110 90; - none oval 14 24 96 76
        - light oval 94 41 112 59; - dark oval 89 56 107 74; - light oval 76 68 94 86; - dark oval 57 74 75 92
        - light oval 35 74 53 92; - dark oval 16 68 34 86; - light oval 3 56 21 74; - dark oval -2 41 16 59
        - light oval 3 26 21 44; - dark oval 16 14 34 32; - light oval 35 8 53 26; - dark oval 57 8 75 26
        - light oval 76 14 94 32; - dark oval 89 26 107 44""",
    "necklace": """
        - main oval 2 0 10 8; - dark oval 1 10 10 19; - dark oval 3 21 12 30; - main oval 6 36 16 46
        - dark oval 13 48 23 59
        - main oval 21 58 32 69; - dark oval 31 65 42 76; - main oval 42 69 54 80; - dark oval 54 70 66 82
        - main oval 66 69 78 80; - dark oval 78 65 89 76; - main oval 88 58 99 69; - dark oval 97 48 107 59
        - main oval 104 36 114 46; - dark oval 108 21 117 30; - dark oval 110 10 119 19; - main oval 110 0 118 8
        - yellow oval 44 78 76 114; body main oval 49 83 71 109; - white oval 53 88 60 96""",
}
