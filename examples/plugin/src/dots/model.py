from torch import nn


class DotsNet(nn.Module):
    """Two layers over the pixels."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(36, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, image):
        return self.net(2 * image - 1)
