"""Animals; `people.py` explains the format."""

ANIMALS: dict[str, str] = {
    "bird": """
        tail dark poly 22 52 0 44 4 60 24 62
        foot orange line 46 70 44 98 4; foot orange line 56 70 58 98 4
        - orange line 42 98 54 98 4; - orange line 56 98 68 98 4
        body main oval 18 38 74 78; head main oval 58 18 88 48
        - orange poly 86 27 104 34 86 40; wing dark poly 26 46 60 50 54 66 38 70 14 62; - black oval 72 26 79 33""",
    "bird fly": """
        tail dark poly 24 52 0 46 0 60 24 62
        wing dark poly 52 56 70 52 84 4 60 14; body main oval 20 44 76 70; head main oval 66 34 92 58
        - orange poly 90 42 106 47 90 52; wing dark poly 34 54 58 52 40 0 14 8; - black oval 78 40 84 46""",
    "cat": """
        tail main line 24 58 6 48 6; tail main line 7 50 4 16 6
        leg main line 30 62 30 99 8; leg main line 40 62 40 98 8; leg main line 62 62 62 99 8
        leg main line 71 62 71 98 8
        body main oval 20 44 78 76; - main poly 64 36 66 14 78 28; - main poly 84 28 95 14 97 36
        - pink poly 68 30 68 20 74 27; - pink poly 88 27 94 20 94 30
        head main oval 63 24 98 56; - yellow oval 70 34 77 42; - yellow oval 85 34 92 42
        - black oval 72 35 75 42; - black oval 87 35 90 42; - pink poly 78 44 84 44 81 48
        - gray line 60 46 76 47 1.5; - gray line 86 47 102 46 1.5""",
    "cat sit": """
        tail main line 34 92 8 88 6; tail main line 9 90 2 66 6; body main oval 26 46 72 98; leg main oval 24 70 54 99
        leg main line 60 58 62 99 8; leg main line 68 58 71 98 8
        - main poly 48 24 50 2 62 16; - main poly 68 16 79 2 81 24; - pink poly 52 18 52 8 58 15
        - pink poly 72 15 78 8 78 18; head main oval 47 12 82 44; - yellow oval 54 22 61 30; - yellow oval 69 22 76 30
        - black oval 56 23 59 30; - black oval 71 23 74 30; - pink poly 62 32 68 32 65 36; - dark line 50 88 38 97 2
        - gray line 44 34 60 35 1.5; - gray line 70 35 86 34 1.5""",
    "dog": """
        tail main line 20 50 2 24 7
        leg main line 26 60 26 99 9; leg main line 38 60 38 98 9; leg main line 62 60 62 99 9
        leg main line 73 60 73 98 9
        body main oval 14 38 82 72; - main poly 60 46 72 26 86 40 80 62
        head main oval 66 12 96 44; - main oval 82 24 112 44; - black oval 104 24 114 32
        - dark oval 62 14 76 46; - white oval 84 18 91 25; - black oval 86 19 91 25
        - red poly 92 43 100 43 98 52 93 52""",
    "dog sit": """
        tail main line 28 90 4 74 7; body main poly 22 92 26 70 48 44 62 34 76 44 74 80 64 98 30 99
        leg main oval 18 68 54 100; leg main line 64 60 66 99 9; leg main line 72 56 76 98 9; head main oval 50 4 82 38
        - main oval 68 18 98 38; - black oval 90 18 100 26; - dark oval 46 8 60 42; - white oval 70 11 77 18
        - black oval 72 12 77 18; - red poly 78 37 86 37 84 46 79 46; - dark line 50 86 40 97 2""",
    "horse": """
        tail dark poly 12 34 0 42 2 74 8 74 10 48 18 42
        leg main line 22 50 20 99 8; leg main line 32 50 33 98 8; leg main line 62 50 62 99 8
        leg main line 72 50 73 98 8
        body main oval 12 30 80 62; - main poly 58 44 78 4 92 10 80 52
        - dark poly 54 36 74 0 82 4 64 42; head main poly 76 2 90 2 112 24 106 32 84 22
        - main poly 78 6 80 -6 86 3
        - black oval 88 8 92 12; - black oval 105 23 108 26""",
    "sheep": """
        leg black line 30 70 30 99 7; leg black line 40 70 40 98 7; leg black line 62 70 62 99 7
        leg black line 71 70 71 98 7
        - main oval 8 40 36 72; - main oval 16 30 44 56; - main oval 36 26 62 52; - main oval 54 30 82 56
        - main oval 58 44 86 74; - main oval 22 54 50 80; - main oval 44 54 72 80; body main oval 14 34 80 76
        head dark oval 78 30 100 62; - dark poly 80 38 66 44 80 46; - main oval 74 24 94 40
        - white oval 86 40 92 46; - black oval 88 41 92 46""",
    "cow": """
        tail main line 14 38 4 62 3; - dark oval 0 60 8 74
        leg main line 22 60 22 99 9; leg main line 34 60 34 98 9; leg main line 64 60 64 99 9
        leg main line 75 60 75 98 9
        - pink oval 38 64 56 80; body main poly 12 34 18 30 80 30 84 36 82 66 76 70 20 70 12 62
        - white poly 28 32 46 32 48 46 36 52 26 44; - white oval 54 44 72 62
        - light line 86 22 80 8 4; - light line 100 22 106 8 4
        head main poly 80 20 106 20 108 36 104 52 88 52 80 38; - pink oval 86 42 108 58
        - black oval 86 27 91 32; - black oval 98 27 103 32; - black oval 91 48 94 52; - black oval 100 48 103 52
        - dark poly 82 24 70 26 78 34""",
    "elephant": """
        tail dark line 6 40 0 66 3
        leg dark line 22 60 22 99 15; leg main line 36 60 36 99 15; leg dark line 58 60 58 99 15
        leg main line 72 60 72 99 15
        body main oval 4 20 86 80; head main oval 66 10 104 58
        trunk main poly 90 30 106 34 112 60 110 92 102 92 102 64 88 54; - white poly 92 54 100 54 114 66 112 70
        - dark oval 58 12 84 58; - black oval 90 26 95 31""",
    "bear": """
        leg dark line 22 66 20 99 16; leg main line 38 66 38 99 16; leg dark line 62 66 62 99 16
        leg main line 76 66 76 99 16
        body main oval 6 30 88 82; - main oval 70 18 82 32; - main oval 92 18 104 32
        head main oval 68 22 106 60; - light oval 88 38 114 58; - black oval 106 38 115 46
        - black oval 86 32 91 37""",
    "zebra": """
        tail main line 14 38 4 64 4; - black oval 0 60 8 76
        leg main line 22 52 21 99 8; leg main line 32 52 33 98 8; leg main line 60 52 60 99 8
        leg main line 70 52 71 98 8
        body main oval 12 32 78 64; - black poly 60 34 76 2 84 6 70 40; - main poly 60 46 76 8 88 12 78 54
        head main poly 72 4 86 4 104 22 100 32 80 24; - black poly 96 22 104 22 101 32 95 30
        - main oval 72 -4 80 10; - black oval 83 9 87 13""",
    "giraffe": """
        tail main line 14 62 6 80 3
        leg main line 22 70 20 119 5; leg main line 30 70 30 119 5; leg main line 50 70 50 119 5
        leg main line 58 70 59 119 5
        body main poly 12 60 50 50 64 52 62 74 20 78; neck main poly 48 58 66 2 76 4 64 62
        head main poly 64 -8 76 -8 94 4 90 12 68 6; - brown line 68 -8 66 -18 3; - brown line 74 -8 74 -18 3
        - main poly 64 -4 54 -8 64 -10; - black oval 76 -5 80 -1""",
}
"""Animals with several poses: they stand, walk, eat, lie, and some fly or sit."""
UNPOSED: dict[str, str] = {
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
}
"""Animals that are drawn in one pose: no verb of the synthetic world applies to them."""
