"""Models that bring out the odd corners of a build log, one for each family of graphs; untrained."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pytest_rknpu.models.recipes.graph import GraphBuilder


class Detector(nn.Module):
    """Split, Concat with slices that are read again, three poolings in a row, three heads."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.widen = nn.Conv2d(3, 32, 3, 2, 1), nn.Conv2d(32, 32, 1)
        self.first, self.second = nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.join, self.down = nn.Conv2d(48, 32, 1), nn.Conv2d(32, 64, 3, 2, 1)
        self.pyramid, self.fine = nn.Conv2d(256, 64, 1), nn.Conv2d(96, 18, 1)
        self.coarse, self.score = nn.Conv2d(64, 18, 1), nn.Conv2d(64, 4, 3, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        left, right = functional.silu(self.widen(functional.silu(self.stem(x)))).split(16, 1)
        inner = right + functional.silu(self.second(functional.silu(self.first(right))))
        fine = functional.silu(self.join(torch.cat([left, right, inner], 1)))
        pooled = [functional.silu(self.down(fine))]
        for _ in range(3):
            pooled.append(functional.max_pool2d(pooled[-1], 5, 1, 2))
        coarse = self.pyramid(torch.cat(pooled, 1))
        resized = functional.interpolate(coarse, scale_factor=2.0)
        boxes = self.coarse(coarse).reshape(1, 3, 6, -1).permute(0, 1, 3, 2)
        return self.fine(torch.cat([resized, fine], 1)), boxes, torch.sigmoid(self.score(coarse))


class Attention(nn.Module):
    """A transformer block: MatMul, Softmax, normalisation, GELU, many reshapes and transposes."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm, self.mix = nn.Conv2d(3, 64, 8, 8), nn.LayerNorm(64), nn.Linear(64, 192)
        self.out, self.up, self.down, self.head = (
            nn.Linear(a, b) for a, b in [(64, 64), (64, 128), (128, 64), (64, 10)]
        )

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        query, key, value = (
            part.reshape(1, -1, 4, 16).transpose(1, 2) for part in self.mix(self.norm(tokens)).chunk(3, -1)
        )
        weights = torch.softmax(query @ key.transpose(-1, -2) / 4, -1)
        tokens = tokens + self.out((weights @ value).transpose(1, 2).reshape(1, -1, 64))
        tokens = tokens + self.down(functional.gelu(self.up(self.norm(tokens))))
        return self.head(tokens.mean(1))


class Mobile(nn.Module):
    """Depthwise convolutions, residual additions, squeeze and excitation, a Softmax; takes any input size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 16, 3, 2, 1), nn.ModuleList()
        for source, target, stride in [(16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1)]:
            hidden = source * 4
            depthwise = nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden)
            self.blocks.append(
                nn.Sequential(
                    nn.Conv2d(source, hidden, 1),
                    nn.ReLU6(),
                    depthwise,
                    nn.ReLU6(),
                    nn.Conv2d(hidden, target, 1),
                )
            )
        self.squeeze, self.excite, self.head = nn.Conv2d(40, 10, 1), nn.Conv2d(10, 40, 1), nn.Linear(40, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu6(self.stem(x))
        for block in self.blocks:
            y = block(x)
            x = x + y if x.shape == y.shape else y
        squeezed = functional.relu(self.squeeze(functional.adaptive_avg_pool2d(x, 1)))
        x = x * functional.hardsigmoid(self.excite(squeezed))
        return torch.softmax(self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1)), 1)


class Recurrent(nn.Module):
    """A GRU: a layer without a name, a compute zone, changes of type between layers."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.memory, self.head = (
            nn.Conv2d(3, 16, (32, 3), 1, (0, 1)),
            nn.GRU(16, 32),
            nn.Linear(32, 11),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.memory(self.rows(x)[:, :, 0].permute(2, 0, 1))[0])


class Dense(nn.Module):
    """Concats within Concats whose inputs are read again, a grouped convolution, a channel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.growth = nn.ModuleList([nn.Conv2d(16 + 16 * i, 16, 3, 1, 1) for i in range(4)])
        self.narrow, self.one = nn.Conv2d(80, 32, 1), nn.Conv2d(32, 16, 1)
        self.three, self.five = nn.Conv2d(32, 16, 3, 1, 1), nn.Conv2d(32, 32, 5, 1, 2)
        self.depthwise, self.head = nn.Conv2d(32, 32, 3, 1, 1, groups=32), nn.Conv2d(96, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        for convolution in self.growth:
            x = torch.cat([x, functional.relu(convolution(x))], 1)
        x = functional.avg_pool2d(self.narrow(x), 2)
        left, right = torch.cat([self.one(x), self.three(x), self.five(x)], 1).split(32, 1)
        both = torch.cat([left, self.depthwise(right)], 1)
        shuffled = both.view(1, 2, 32, 16, 16).transpose(1, 2).reshape(1, 64, 16, 16)
        return self.head(torch.cat([shuffled, x], 1))


class Unet(nn.Module):
    """Skip connections that live long, transposed convolutions, a Softmax over channels, two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = self._pair(3, 16), self._pair(16, 32), self._pair(32, 64)
        self.up, self.fourth = nn.ConvTranspose2d(64, 32, 2, 2), self._pair(64, 32)
        self.last_up, self.fifth, self.head = (
            nn.ConvTranspose2d(32, 16, 2, 2),
            self._pair(32, 16),
            nn.Conv2d(16, 2, 1),
        )

    @staticmethod
    def _pair(source: int, target: int) -> nn.Sequential:
        first, second = nn.Conv2d(source, target, 3, 1, 1), nn.Conv2d(target, target, 3, 1, 1)
        return nn.Sequential(first, nn.ReLU(), second, nn.LeakyReLU(0.1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.first(x)
        middle = self.second(functional.max_pool2d(fine, 2))
        coarse = self.third(functional.max_pool2d(middle, 2))
        middle = self.fourth(torch.cat([self.up(coarse), middle], 1))
        fine = self.fifth(torch.cat([self.last_up(middle), fine], 1))
        return torch.softmax(self.head(fine), 1), torch.tanh(middle)


class Grouped(nn.Module):
    """Convolutions of few groups, which become Split, a convolution each, and Concat; one of many groups."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.four = nn.Conv2d(3, 128, 3, 2, 1), nn.Conv2d(128, 128, 3, 1, 1, groups=4)
        self.two = nn.Conv2d(128, 64, 3, 1, 1, groups=2)
        self.many, self.head = nn.Conv2d(64, 64, 3, 1, 1, groups=16), nn.Conv2d(64, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        x = x + functional.prelu(self.four(x), torch.full((128,), 0.2))
        return self.head(self.many(torch.sigmoid(self.two(x))))


class Operators(nn.Module):
    """Operators that fall to the CPU, one with two outputs, a tensor that one operator reads twice."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.depthwise = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.up = nn.ConvTranspose2d(16, 8, 4, 2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        wide = torch.relu(self.wide(x))
        depth = self.depthwise(wide)
        square = depth * depth + wide
        values, indices = torch.topk(torch.sin(square).mean((2, 3)), 3)
        small = torch.exp(-functional.hardswish(self.up(square)))
        largest = torch.max(small, 1, keepdim=True)[0] * torch.argmax(small, 1, keepdim=True).float()
        return values, indices, torch.cumsum(square.mean(3), 1), small, largest


def names() -> bytes:
    """Names that are long, hold spaces, a bar, and letters that are not ASCII."""
    graph, draw = GraphBuilder("names"), _drawn()
    long = "a_name_as_long_as_some_exporters_write_them/with/slashes/" + "and_more_" * 6
    graph.convolution(long + "1", "input", draw(16, 4, 3, 3), draw(16))
    graph.relu(long + "2", long + "1")
    graph.convolution("a name with spaces", long + "2", draw(16, 16, 3, 3), draw(16))
    graph.convolution("ünï|code", "a name with spaces", draw(8, 16, 1, 1), draw(8))
    graph.relu("output", "ünï|code")
    return graph.finish("input", (4, 16, 16), {"output": (8, 16, 16)})


def constant_free() -> bytes:
    """Nothing but poolings and a Relu: there is no table of weights."""
    graph = GraphBuilder("constant_free")
    graph.maximum_pool("pooled", "input", 2)
    graph.relu("output", "pooled")
    return graph.finish("input", (16, 16, 16), {"output": (16, 8, 8)})


def large() -> bytes:
    """Totals of more than six digits."""
    graph, draw = GraphBuilder("large"), _drawn()
    graph.convolution("wide", "input", draw(520, 256, 3, 3), draw(520))
    graph.relu("output", "wide")
    return graph.finish("input", (256, 61, 67), {"output": (520, 61, 67)})


def wide() -> bytes:
    """Channels enough for weights that are compressed: their predicted traffic can be below nothing."""
    graph, draw = GraphBuilder("wide"), _drawn()
    graph.convolution("first", "input", draw(256, 256, 3, 3), draw(256))
    graph.relu("first.relu", "first")
    graph.convolution("second", "first.relu", draw(256, 256, 1, 1), draw(256))
    graph.relu("output", "second")
    return graph.finish("input", (256, 8, 8), {"output": (256, 8, 8)})


def _drawn() -> Callable[..., np.ndarray]:
    generator = np.random.default_rng(3)
    return lambda *shape: (generator.standard_normal(shape) / 8).astype(np.float32)


_MODULES: Mapping[str, tuple[type[nn.Module], int]] = {
    "detector": (Detector, 64),
    "attention": (Attention, 32),
    "mobile": (Mobile, 64),
    "recurrent": (Recurrent, 32),
    "dense": (Dense, 64),
    "unet": (Unet, 64),
    "operators": (Operators, 32),
    "grouped": (Grouped, 32),
}
_GRAPHS: Mapping[str, Callable[[], bytes]] = {
    "names": names,
    "constant_free": constant_free,
    "large": large,
    "wide": wide,
}


def onnx_of(name: str) -> bytes:
    """The float ONNX model of this name, from a fixed seed."""
    if name in _GRAPHS:
        return _GRAPHS[name]()
    module, side = _MODULES[name]
    torch.manual_seed(7)
    buffer = io.BytesIO()
    example = torch.zeros(1, 3, side, side)
    torch.onnx.export(module().eval(), example, buffer, opset_version=13, input_names=["input"])
    return buffer.getvalue()
