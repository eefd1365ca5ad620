"""The machine below a stack: toolkits, tools, JIT caches, the kernel's side of the driver, container, limits, model.

These types are fields of `bringup.facts.Facts` and follow its manner: frozen, tuples inside, and what could not be read
is an `Unknown` with its reason. Sizes are bytes, times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from bringup.known import Maybe, Unknown

NOT_LOOKED = Unknown("was not looked at")

# --- what compiles ----------------------------------------------------------------------------------------------------


class Component(Struct, frozen=True):
    """One part of a toolkit. ``version`` as its own file says it (``13.0.88``), '' where the file does not say."""

    name: Literal["nvcc", "crt", "nvvm", "ptxas", "runtime", "cccl", "nvrtc"]
    version: str
    path: str
    owner: str = ""
    """The distribution that laid it there, '' where none is known."""
    modified: float = 0.0


class Toolkit(Struct, frozen=True):
    """A folder that can be a CUDA_HOME, whole or in parts.

    ``cudart`` is CUDART_VERSION of its cuda_runtime_api.h as ``13.0``. ``launch_arguments`` is how many arguments the
    crt headers' ``__cudaLaunch`` macro takes: nvvm's cicc writes calls of it, so the two must agree. ``nvcc_knows`` and
    ``ptxas_knows`` are virtual architectures (``compute_120f``) that the binaries hold in their tables.
    """

    home: str
    found: tuple[str, ...] = ()
    """How it was found: ``CUDA_HOME``, ``PATH``, ``/usr/local``, ``wheels``, ``conda``."""
    real_home: str = ""
    components: tuple[Component, ...] = ()
    cudart: str = ""
    launch_arguments: int = 0
    nvcc_says_simt_only: bool = False
    nvvm_takes_simt_only: bool = False
    """nvcc hands cicc the option --simt-only from some release on; an older cicc refuses it. Read from their bytes."""
    host_gcc_maximum: int = 0
    host_clang_maximum: int = 0
    nvcc_knows: tuple[str, ...] = ()
    ptxas_knows: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    """Which of the headers that JIT users include are there: ``cuda_runtime.h``, ``cub/cub.cuh``, ``cublasLt.h``."""
    link_names: tuple[str, ...] = ()
    """Files below it that a linker is given: ``lib64/libcudart.so``, ``lib64/stubs/libcuda.so``."""
    nvcc_is_script: str = ""
    """The nvcc that a script of that name starts, '' where nvcc is the compiler itself."""

    def component(self, name: str) -> Component | None:
        """The part of that name, None where the folder does not hold it."""
        return next((one for one in self.components if one.name == name), None)

    def version(self, name: str) -> str:
        """The version of a part, '' where it is absent or does not say."""
        found = self.component(name)
        return found.version if found is not None else ""


class Tool(Struct, frozen=True):
    """A program. ``on_path`` is its place among those of its name on PATH, from 0; -1 where PATH misses it."""

    name: str
    path: str
    version: str = ""
    on_path: int = 0
    knows: tuple[str, ...] = ()
    """For a ptxas: the virtual architectures in its table."""


class CachedLibrary(Struct, frozen=True):
    """A compiled module in a JIT cache."""

    path: str
    modified: float
    needed: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Symbols of c10, at and torch that it imports and that the installed torch does not export."""
    cuda_home: str = ""
    """The ``cuda_home`` of the build.ninja beside it."""


class CacheFolder(Struct, frozen=True):
    """Where one package keeps what it compiles. ``base`` is the nearest folder that exists."""

    user: str
    path: str
    decided_by: str
    """The environment variable that set it, or ``HOME``."""
    exists: bool
    base: str
    writable: bool
    filesystem: str = ""
    options: tuple[str, ...] = ()
    free: int = -1
    locks: tuple[tuple[str, float], ...] = ()
    libraries: tuple[CachedLibrary, ...] = ()


# --- the kernel's side of the driver, and what surrounds it -----------------------------------------------------------


class KernelModule(Struct, frozen=True):
    """The loaded nvidia.ko, from /proc/driver/nvidia/version."""

    release: str
    flavor: Literal["open", "proprietary"]


class DriverFile(Struct, frozen=True):
    """A user-space library of the driver; ``release`` is read from the name of the file behind its links."""

    soname: str
    path: str
    real: str
    release: str
    compat: bool = False
    """It lies in a ``compat`` folder (cuda-compat): forward compatibility, not the driver's own."""


class SmiGpu(Struct, frozen=True):
    """One GPU as ``nvidia-smi`` lists it. Counters are -1 where it does not say."""

    index: int
    name: str
    uuid: str = ""
    bus: str = ""
    compute_capability: str = ""
    brand: str = ""
    memory: int = 0
    memory_free: int = -1
    compute_mode: str = ""
    mig: str = ""
    ecc: str = ""
    ecc_uncorrectable: int = -1
    remap_pending: bool = False
    remap_failed: bool = False
    fabric_state: str = ""
    fabric_status: str = ""
    bar1: int = 0


class PciGpu(Struct, frozen=True):
    """An NVIDIA display or 3D controller, or an NVSwitch, on the PCI bus."""

    address: str
    device: str
    pci_class: str
    driver: str
    numa_node: int = -1
    largest_bar: int = 0

    @property
    def is_gpu(self) -> bool:
        """VGA (0x0300) or 3D controller (0x0302)."""
        return self.pci_class.startswith(("0x0300", "0x0302"))

    @property
    def is_switch(self) -> bool:
        """NVSwitches are bridges of class 0x0680."""
        return self.pci_class.startswith("0x0680")


class Topology(Struct, frozen=True):
    """``nvidia-smi topo -m``: between each pair of GPUs ``NV18``, ``PIX``, ``PXB``, ``PHB``, ``NODE`` or ``SYS``."""

    gpus: tuple[str, ...]
    links: tuple[tuple[str, ...], ...]


class Mount(Struct, frozen=True):
    """One line of /proc/mounts."""

    point: str
    filesystem: str
    options: tuple[str, ...]
    source: str = ""


class Xid(Struct, frozen=True):
    """An error that the driver wrote to the kernel log: NVRM: Xid (PCI:0000:01:00): 79, ..."""

    number: int
    device: str
    text: str


class Limits(Struct, frozen=True):
    """Soft limits of the process; -1 is unlimited."""

    memlock: int
    open_files: int
    stack: int = -1


class Machine(Struct, frozen=True, kw_only=True):
    """What lies below the stack apart from its compilers. Every field may be unknown on its own."""

    container: Maybe[str] = NOT_LOOKED
    """``docker``, ``podman``, ``kubernetes``, ``lxc``, ``wsl``, ``container`` or ``none``."""
    user: Maybe[int] = NOT_LOOKED
    user_namespace: Maybe[bool] = NOT_LOOKED
    """Whether the process is in a user namespace that maps only part of the ids."""
    module: Maybe[KernelModule] = NOT_LOOKED
    driver_files: Maybe[tuple[DriverFile, ...]] = NOT_LOOKED
    """In the order in which the loader would meet them."""
    smi: Maybe[tuple[SmiGpu, ...]] = NOT_LOOKED
    smi_error: Maybe[str] = NOT_LOOKED
    """What nvidia-smi printed where it failed, '' where it answered."""
    devices: Maybe[tuple[str, ...]] = NOT_LOOKED
    """The /dev/nvidia* and /dev/dxg nodes."""
    device_links: Maybe[tuple[str, ...]] = NOT_LOOKED
    """Links of /dev/char that lead to NVIDIA nodes."""
    pci: Maybe[tuple[PciGpu, ...]] = NOT_LOOKED
    topology: Maybe[Topology] = NOT_LOOKED
    modules: Maybe[tuple[str, ...]] = NOT_LOOKED
    """Names of loaded kernel modules."""
    kernel_log: Maybe[tuple[str, ...]] = NOT_LOOKED
    """Lines of the kernel log that speak of NVRM, nouveau, nvidia, IOMMU or module signatures."""
    xids: Maybe[tuple[Xid, ...]] = NOT_LOOKED
    secure_boot: Maybe[bool] = NOT_LOOKED
    command_line: Maybe[str] = NOT_LOOKED
    """/proc/cmdline of the kernel."""
    iommu_groups: Maybe[int] = NOT_LOOKED
    acs_redirect: Maybe[tuple[str, ...]] = NOT_LOOKED
    """PCI bridges whose ACS redirects requests between peers to the root complex."""
    fabric_manager: Maybe[str] = NOT_LOOKED
    """``active``, ``inactive``, ``failed``, or ``absent``."""
    fabric_manager_release: Maybe[str] = NOT_LOOKED
    limits: Maybe[Limits] = NOT_LOOKED
    shared_memory: Maybe[int] = NOT_LOOKED
    """Size of /dev/shm."""
    memory: Maybe[int] = NOT_LOOKED
    memory_available: Maybe[int] = NOT_LOOKED
    mounts: Maybe[tuple[Mount, ...]] = NOT_LOOKED
    infiniband: Maybe[tuple[str, ...]] = NOT_LOOKED
    """Names below /sys/class/infiniband."""
    cuda_requirement: Maybe[str] = NOT_LOOKED
    """NVIDIA_REQUIRE_CUDA of the image."""
    toolkit_no_cgroups: Maybe[bool] = NOT_LOOKED
    """``no-cgroups`` of nvidia-container-runtime's config.toml."""
    python_header: Maybe[bool] = NOT_LOOKED
    """Whether Python.h lies in the interpreter's include folder."""
    installed: Maybe[tuple[tuple[str, float], ...]] = NOT_LOOKED
    """Per distribution that JIT caches depend on, when it was installed (its RECORD's mtime)."""


# --- the model --------------------------------------------------------------------------------------------------------


class Model(Struct, frozen=True):
    """What a model's folder says of its memory. Sizes in bytes; 0 where its files do not say."""

    path: str
    architecture: str
    model_type: str
    dtype: str
    quantization: str
    weight_bytes: int
    parameters: int
    layers: int
    attention_layers: int
    heads: int
    kv_heads: int
    head_size: int
    hidden_size: int
    vocabulary: int
    context: int
    experts: int = 0
    latent_size: int = 0
    """kv_lora_rank + qk_rope_head_dim of latent attention (MLA), which caches one vector a token; 0 elsewhere."""
    source: str = ""
