"""Train a small GPT on the text of this repository: a real training run, unaware of underdog.

    python examples/train_gpt.py --steps 500
    underdog measure -- python examples/train_gpt.py

The text is every Markdown and Python file beside this one and above it, read as bytes.
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Windows of ``length`` bytes of a text, each with the same window one byte later."""

    def __init__(self, text: bytes, length: int) -> None:
        self.tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self.length = length

    def __len__(self) -> int:
        return len(self.tokens) - self.length

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.tokens[i : i + self.length + 1]
        return window[:-1], window[1:]


class Block(nn.Module):
    """Pre-norm causal self-attention and a feed-forward layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = (
            self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    """A decoder-only transformer over bytes."""

    def __init__(self, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(places))))


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, device: str, batches: int = 4) -> float:
    model.eval()
    losses = [
        loss_of(model, x.to(device), y.to(device)).item()
        for _, (x, y) in zip(range(batches), loader, strict=False)
    ]
    model.train()
    return sum(losses) / len(losses)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=128, help="bytes of context")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--evaluate-every", type=int, default=250)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    root = Path(__file__).resolve().parent.parent
    files = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.py")])
    text = b"\n".join(file.read_bytes() for file in files)
    cut = int(len(text) * 0.9)
    training = DataLoader(
        Windows(text[:cut], args.length), args.batch_size, shuffle=True, num_workers=args.workers
    )
    held_out = DataLoader(Windows(text[cut:], args.length), args.batch_size, shuffle=True)
    model = GPT(args.length, args.width, args.layers, args.heads).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step_model = torch.compile(model) if args.compile else model
    autocast = torch.autocast(device, torch.bfloat16, enabled=args.dtype == "bfloat16")

    began, step = time.perf_counter(), 0
    while step < args.steps:
        for x, y in training:
            with autocast:
                loss = loss_of(step_model, x.to(device), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.evaluate_every == 0 or step == args.steps:
                bits = evaluate(model, held_out, device) / math.log(2)
                seconds = time.perf_counter() - began
                print(f"step {step}: {bits:.2f} bits per byte after {seconds:.0f} s", flush=True)
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
