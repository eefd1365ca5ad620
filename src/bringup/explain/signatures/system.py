# ruff: noqa: E501 - rows of a table, one a line where they fit
"""NCCL and more than one GPU; files, permissions and caches.

Wordings: NCCL 2.1x to 2.3x, ibverbs, torch.distributed, the kernel's IOMMU, Python's OSError.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_REG_MR = r"ibv_reg_mr\w*[^\n]{0,40}(?:fail|error|cannot allocate|enomem)|ibv_create_(?:cq|qp)[^\n]{0,40}(?:fail|cannot allocate)"
_NCCL = r"\bnccl\b|ncclunhandled|ncclsystem|ncclinternal|processgroupnccl|nccl_\w+"
_ILLEGAL = r"illegal memory access|cuda failure 700|cudaerrorillegaladdress"
_HANG = r"\bhang(?:s|ing)?\b|\bhung\b|\bstuck\b|freez(?:es?|ing)|deadlock|blocks forever|never (?:returns|finish\w*|complet\w*)|watchdog caught collective|no (?:progress|output)"
_RO = r"(?:read-only file system|errno 30\b|\berofs\b)(?![^\n]{0,240}(?:site|dist)-packages)"

ROWS: tuple[Row, ...] = (
    Row(
        "nccl_too_old_for_gpu",
        5,
        r"nccl (?:error|warn|fail)|unhandled (?:cuda|system) error|ncclunhandled\w+|ncclinternal\w+|ncclsystem\w+|nccl[^\n]{0,40}(?:fail|crash|hang|error)",
        ("blackwell_desktop",),
    ),
    Row(
        "nccl_too_old_for_gpu",
        7,
        r"ncclmaxsharedmem \d+ exceeds|nccl[^\n]{0,30}(?:too old|does(?: not|n't) support|no support|not support)[^\n]{0,40}(?:blackwell|sm_?12|5090|gpu|arch)?",
    ),
    Row("nccl_too_old_for_gpu", 7, r"nccl[^\n]{0,40}\b2\.(?:1\d|2[0-6])\.\d", ("blackwell",)),
    Row(
        "nccl_too_old_for_gpu",
        4,
        r"unhandled cuda error|cuda failure[^\n]{0,40}(?:invalid (?:device function|argument|value)|named symbol|no kernel image|invalid resource)",
        ("blackwell",),
        also=_NCCL,
    ),
    Row("nccl_too_old_for_gpu", 3, r"nccl[^\n]{0,30}(?:upgrad|updat|newer|2\.2[6-9]|2\.3\d)", ("blackwell",)),
    Row("nccl_too_new_for_driver", 7, r"\bnvls\b|nvlink sharp|cumulticast|multicast", also=_NCCL),
    Row(
        "nccl_too_new_for_driver",
        8,
        r"not supported in the installed cuda driver|cuda failure (?:801|36|222)|cuda driver[^\n]{0,40}(?:too old|does not support)[^\n]{0,40}nccl",
        also=_NCCL,
    ),
    Row(
        "nccl_too_new_for_driver",
        4,
        r"cuda failure[^\n]{0,40}(?:invalid argument|operation not supported|unknown error)|unhandled cuda error",
        ("!blackwell",),
        also=_NCCL,
    ),
    Row(
        "nccl_env_variable_bad",
        6,
        r"nccl_(?:buffsize|nthreads|max_nchannels|min_nchannels|ib_\w+|p2p_level|algo|proto|ll_threshold|net_gdr\w*|cumem\w*|socket_\w+)\s{0,2}[=:] ?\S+|nccl_\w+ set (?:by environment )?to",
    ),
    Row("nccl_env_variable_bad", 6, r"nccl_buffsize"),
    Row("nccl_env_variable_bad", 3, _REG_MR, also=r"nccl_buffsize|nccl_\w+="),
    Row("memlock_limit", 7, _REG_MR),
    Row("memlock_limit", 8, r"\bmemlock\b|ulimit -l|max locked memory|rlimit_memlock"),
    Row("rdma_pin_fails_on_cma_pages", 5, _REG_MR),
    Row(
        "rdma_pin_fails_on_cma_pages",
        8,
        r"cma(?:total|free)|\bcma\b|\bkho\b|contiguous memory allocator|page pinning|pin_user_pages|migrat\w+[^\n]{0,30}pages",
    ),
    Row("rdma_pin_fails_on_cma_pages", 3, r"memfree|free memory|unlimited", ("gb10",), also=_REG_MR),
    Row(
        "rdma_pin_fails_on_cma_pages",
        3,
        r"memlock[^\n]{0,30}unlimited|unlimited[^\n]{0,30}memlock|ulimit -l[^\n]{0,20}unlimited",
        also=_REG_MR,
    ),
    Row(
        "memlock_limit",
        -3,
        r"memlock[^\n]{0,30}unlimited|ulimit -l[^\n]{0,20}unlimited",
        also=r"\bcma\b|cma(?:total|free)|\bkho\b",
    ),
    Row("p2p_hang_acs_iommu", 8, r"io_page_fault|amd-vi|dmar[^\n]{0,30}fault|\bacs(?:ctl)?\b|access control services"),
    Row("p2p_hang_acs_iommu", 6, r"\biommu\b|\bvt-d\b"),
    Row("p2p_hang_acs_iommu", 4, _HANG, also=_NCCL + r"|p2p|all_?reduce|tensor.parallel|--tp|multi.?gpu|iommu"),
    Row("p2p_hang_acs_iommu", 4, r"nccl_p2p_disable|p2p_disable|disable_p2p|100% (?:gpu|util)|100% gpu"),
    Row("p2p_hang_acs_iommu", 2, _HANG, ("several_gpus",)),
    Row(
        "p2p_advertised_but_broken_bar1",
        7,
        r"\bbar1\b|static bar1|cudaerrormapbufferobjectfailed|mapping of buffer object failed",
    ),
    Row(
        "p2p_advertised_but_broken_bar1",
        5,
        r"patched[^\n]{0,30}(?:driver|module|kernel|p2p)|tinygrad|aikitoria|p2p (?:driver|patch|hack)",
    ),
    Row(
        "p2p_advertised_but_broken_bar1",
        4,
        r"p2p[^\n]{0,60}(?:ok|works|supported|enabled|reported|advertis|true|yes|zero|wrong|corrupt|garbage|fail|broken)|simplep2p|p2pbandwidth|can_device_access_peer",
    ),
    Row("tp_illegal_access_blackwell", 5, _ILLEGAL, ("blackwell_desktop",)),
    Row(
        "tp_illegal_access_blackwell",
        4,
        _ILLEGAL,
        also=r"tensor.parallel|--tp\b|tp ?[=:]? ?\d|\btp\d\b|2 gpus|2x|all_?reduce|nccl",
    ),
    Row(
        "shm_too_small",
        9,
        r"error while creating shared memory segment|insufficient shared memory|out of shared memory segment|unable to (?:open|allocate) shared memory|killed by signal: bus error|might be caused by insufficient shared",
    ),
    Row(
        "shm_too_small",
        8,
        r"/dev/shm[^\n]{0,60}(?:no space|full|too small|64m|size)|no space left on device[^\n]{0,60}(?:shm|nccl)|shm\S{0,20}[^\n]{0,60}no space left|nccl[^\n]{0,80}no space left",
    ),
    Row("shm_too_small", 6, r"bus error|\bsigbus\b|posix_fallocate|shm-size|shm_size|ipc=host|--ipc|ipc: host"),
    Row("shm_too_small", 5, r"unhandled system error|ncclsystemerror", ("container",)),
    Row("shm_too_small", 3, r"unhandled system error|ncclsystemerror"),
    Row("shm_too_small", 4, r"/dev/shm\b|/dev/shm/nccl"),
    # Files, permissions, caches
    Row(
        "home_or_cache_not_writable",
        9,
        r"permission denied: ?b?'?/(?:\.[a-z]\w*|\S{0,80}/\.(?:cache|config|triton|local|cupy|nv|keras|ray|huggingface|vllm|flashinfer|sglang|cargo)|\.cache)\S*",
    ),
    Row(
        "home_or_cache_not_writable",
        8,
        r"(?:errno 13|permission denied|permissionerror)[^\n]{0,60}(?:cache|/nonexistent|triton|outlines|torchinductor|hub|/home|\.config|tmp)|(?:cache|home|triton|outlines)[^\n]{0,60}(?:permission denied|not writable|unwritable|no write)",
    ),
    Row("home_or_cache_not_writable", 8, _RO),
    Row(
        "home_or_cache_not_writable",
        8,
        r"getpwuid\(\): uid not found|no such file or directory: '/nonexistent|mkdir /\.cache|(?<![\w~.-])/\.(?:triton|cache)\b",
    ),
    Row(
        "home_or_cache_not_writable",
        2,
        r"unwritable cache dir|home directory[^\n]{0,30}not|non-?root|runasuser|random uid|readonlyrootfilesystem",
    ),
    Row(
        "package_dir_not_writable",
        10,
        r"(?:permission denied|errno 13|errno 30|read-only file system|not writable)[^\n]{0,20}:? ?'?\S{0,200}(?:site|dist)-packages/",
    ),
    Row(
        "package_dir_not_writable", 6, r"(?:site|dist)-packages[^\n]{0,120}(?:permission denied|read-only|not writable)"
    ),
    Row(
        "disk_full",
        9,
        r"no space left on device|errno 28\b|disk quota exceeded|errno 122\b",
        unless=r"/dev/shm|(?:shm|nccl)[^\n]{0,80}no space|no space[^\n]{0,80}(?:shm|nccl)",
    ),
    Row(
        "worker_ended",
        4,
        r"dataloader worker \(pid[^\n]{0,40}exited unexpectedly|brokenprocesspool|process pool was terminated abruptly",
        unless=r"shared memory|/dev/shm|\bbus error",
    ),
    Row(
        "port_taken",
        7,
        r"errno 98\b[^\n]{0,120}(?:address already in use|bind)|address already in use|port \d{1,5} is (?:already )?in use",
    ),
    Row(
        "engine_option_unknown",
        7,
        r"(?:vllm|sglang|launch_server|api_server)[^\n]{0,60}error: (?:unrecognized arguments|the following arguments are required|"
        r"argument )",
    ),
    Row(
        "model_folder_incomplete",
        8,
        r"safetensorerror[^\n]{0,80}(?:incomplete metadata|header too large|invalid header|headertoosmall|deserializing header)",
    ),
)
