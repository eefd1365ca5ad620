"""Plain torch: what `import torch` and a first kernel touch."""

from __future__ import annotations

from bringup.evaluate.engines.tables import Touch

_E = "torch"

TOUCHES: tuple[Touch, ...] = (
    Touch(_E, "import", 10, "libtorch_global_deps.so, preloads of CUDA wheels, torch._C", ("torch",),
          "torch 2.14.1: torch/__init__.py"),
    Touch(_E, "device", 10, "cuInit at the first use of torch.cuda", (), "torch 2.14.1: torch/cuda/__init__.py _lazy_init"),
    Touch(_E, "jit", 20, "torch.compile: inductor and Triton, only where it is used", ("triton",),
          "torch 2.14.1: torch/_inductor"),
)  # fmt: skip
