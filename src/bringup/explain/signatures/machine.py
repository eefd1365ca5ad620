# ruff: noqa: E501 - rows of a table, one a line where they fit
"""Kernel driver, hardware, the driver's user space, and containers.

Wordings: NVRM and Xid lines of the kernel log, nvidia-smi, torch.cuda's initialisation, cudaError_t and CUresult names
of the CUDA reference, nvidia-container-cli, dockerd, nvidia-fabricmanager.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_CANNOT_TALK = r"nvidia-smi has failed because it couldn.t communicate"
_BUSY = r"all cuda-capable devices are busy or unavailable|cudaerrordevicesunavailable"
_E804 = r"error 804|forward compatibility was attempted on non.?supported hw|cudaerrorcompatnotsupportedondevice|compat_not_supported_on_device"
_UNKNOWN = (
    r"cuda unknown error|cuda_error_unknown|cudaerrorunknown|error 999|unknown error \(?(?:999|30)|returned (?:30|999)"
)
_LOST_HINT = r"daemon-reload|cgroup|after (?:a |some |several |few |about )*(?:while|time|minutes|hours|days)|/dev/char"

ROWS: tuple[Row, ...] = (
    # Kernel driver
    Row("driver_library_version_mismatch", 10, r"driver/library version mismatch"),
    Row("driver_library_version_mismatch", 10, r"api mismatch: ?(?:the|this) (?:nvidia )?(?:client|kernel module)"),
    Row("driver_library_version_mismatch", 5, r"nvml library version: ?\d+"),
    Row("driver_library_version_mismatch", 6, r"nvml_error_lib_rm_version_mismatch|nvmlerror_librmversionmismatch"),
    Row(
        "driver_library_version_mismatch",
        4,
        r"kernel module (?:has|is|version)[^\n]{0,40}\d{3}\.\d+[^\n]{0,60}(?:client|library|user)",
    ),
    Row("blackwell_init_fails_bar_or_module_flavor", 10, r"requires? (?:the )?use of the nvidia open kernel modules"),
    Row(
        "blackwell_init_fails_bar_or_module_flavor",
        9,
        r"(?:bar ?\d? is 0m|i/o region assigned to your nvidia device is invalid)",
    ),
    Row("blackwell_init_fails_bar_or_module_flavor", 7, r"rm_?init_?adapter:? failed|cannot initialize gsp firmware"),
    Row("blackwell_init_fails_bar_or_module_flavor", 4, r"rm_?init_?adapter|no devices were found", ("blackwell",)),
    Row("blackwell_init_fails_bar_or_module_flavor", 3, r"no devices were found"),
    Row(
        "blackwell_init_fails_bar_or_module_flavor",
        6,
        r"(?:can't|can ?not|failed to|unable to) assign[^\n]{0,40}(?:bar|mem)|bar \d[^\n]{0,30}no space",
    ),
    Row(
        "blackwell_init_fails_bar_or_module_flavor",
        4,
        r"above 4g|resizable bar|rebar\b|proprietary (?:kernel )?(?:module|driver)",
    ),
    Row("blackwell_init_fails_bar_or_module_flavor", 6, r"probe of [0-9a-f:.]+ failed with error -1"),
    Row(
        "blackwell_init_fails_bar_or_module_flavor",
        7,
        r"is not supported by (?:the )?(?:nvidia )?(?:\d{3}\S* )?(?:driver|open nvidia)",
    ),
    Row("xid79_fallen_off_bus", 10, r"fallen off the bus"),
    Row("xid79_fallen_off_bus", 10, r"xid[^\n]{0,40}[:, ] ?79\b"),
    Row(
        "xid79_fallen_off_bus",
        7,
        r"gpu is lost|nvml_error_gpu_is_lost|unable to determine the device handle|os_pci_read_config_dword",
    ),
    Row(
        "secure_boot_blocks_module",
        9,
        r"required key not available|key was rejected by service|errno 129|-ekeyrejected",
    ),
    Row("secure_boot_blocks_module", 6, r"secure ?boot"),
    Row(
        "secure_boot_blocks_module",
        5,
        r"module verification failed|loading of unsigned module is rejected|lockdown: modprobe|\bmok\b|mokutil",
    ),
    Row("nouveau_holds_gpu", 9, r"kernel driver in use: ?(?:nouveau|vfio)|nouveau, rivafb|bound to (?:nouveau|vfio)"),
    Row(
        "nouveau_holds_gpu",
        9,
        r"already loaded[^\n]{0,80}nouveau|nouveau[^\n]{0,60}(?:in use|loaded|holds|bound|using|claim)",
    ),
    Row("nouveau_holds_gpu", 6, r"\bnouveau\b"),
    Row("nouveau_holds_gpu", 5, r"nvidia probe routine was not called"),
    Row("nouveau_holds_gpu", 3, _CANNOT_TALK),
    Row("secure_boot_blocks_module", 3, _CANNOT_TALK),
    Row(
        "fabric_manager_not_running",
        9,
        r"error 802|system not yet initialized|cudaerrorsystemnotready|cuda_error_system_not_ready",
    ),
    Row(
        "fabric_manager_not_running",
        7,
        r"fabric ?manager[^\n]{0,60}(?:not (?:running|started|active|installed)|inactive|dead|stopped|missing)",
    ),
    Row(
        "fabric_manager_not_running",
        8,
        r"fabric[^\n]{0,40}state[^\n]{0,20}(?:in progress|not (?:started|completed)|n/a)|fabric state",
    ),
    Row("fabric_manager_version_mismatch", 10, r"fabric ?manager[^\n]{0,120}(?:don.t|do(?:es)? not|doesn.t) match"),
    Row("fabric_manager_version_mismatch", 10, r"update with matching nvidia driver package"),
    Row(
        "fabric_manager_version_mismatch",
        8,
        r"fabric ?manager[^\n]{0,100}(?:mismatch|\d{3}\.\d+[^\n]{0,60}driver[^\n]{0,40}\d{3}\.\d+)",
    ),
    Row(
        "fabric_manager_version_mismatch",
        6,
        r"nvidia-fabric-?manager(?:-dev)?[- =]\d{3}\.\d+",
        also=r"error 802|fabric",
    ),
    Row("fabric_manager_not_applicable", 10, r"nv_warn_nothing_to_do|nothing to do[^\n]{0,20}nv_warn"),
    Row(
        "fabric_manager_not_applicable",
        8,
        r"query nvswitch device information|no nvswitch|nvswitch(?:es)?[^\n]{0,30}(?:not (?:found|present|detected)|absent)",
    ),
    Row(
        "fabric_manager_not_applicable",
        6,
        r"nvidia-fabricmanager\.service[^\n]{0,60}fail|start nvidia fabric manager service",
    ),
    Row("fabric_manager_not_applicable", -4, r"error 802|system not yet initialized"),
    Row("ecc_uncorrectable", 10, r"uncorrectable ecc|cudaerroreccuncorrectable|cuda_error_ecc_uncorrectable"),
    Row(
        "ecc_uncorrectable",
        8,
        r"double.bit ecc|xid[^\n]{0,40}[:, ] ?(?:48|63|64|94|95)\b|row.?remap[^\n]{0,40}(?:pending|fail)",
    ),
    Row("ecc_uncorrectable", 4, r"\becc\b[^\n]{0,40}error|volatile uncorr[^\n]{0,10}ecc[^\n]{0,30}[1-9]"),
    Row("cuda_unknown_error_after_suspend", 5, _UNKNOWN),
    Row(
        "cuda_unknown_error_after_suspend",
        6,
        r"(?:after|since|from|upon) (?:a |the |every |each )?(?:suspend|resum|sleep|hibernat|wake|wak)|suspend/resume|suspended",
    ),
    Row(
        "cuda_unknown_error_after_suspend",
        4,
        r"rmmod nvidia_uvm|reload[^\n]{0,20}nvidia_uvm|modprobe nvidia_uvm|cuda_visible_devices after program start",
    ),
    Row("exclusive_compute_mode", 5, _BUSY),
    Row(
        "exclusive_compute_mode",
        8,
        r"exclusive[ _](?:process|thread|mode)|exclusive_process|e\. ?process|compute mode[^\n]{0,30}(?:exclusive|prohibited)",
    ),
    Row("mps_busy_or_unavailable", 5.5, _BUSY),
    Row("mps_busy_or_unavailable", 6, r"\bmps\b|multi-process service|nvidia-cuda-mps"),
    Row(
        "mps_busy_or_unavailable",
        9,
        r"cudaerrormps\w+|cuda_error_mps\w+|mps (?:client|server|control daemon)[^\n]{0,60}(?:fail|not ready|unavailable|busy)",
    ),
    # The driver's user space
    Row("driver_older_than_cuda_runtime", 9, r"nvidia driver on your system is too old"),
    Row(
        "driver_older_than_cuda_runtime",
        9,
        r"driver version is insufficient for (?:the )?cuda runtime|cudaerrorinsufficientdriver|cuda_?error_?insufficient_?driver",
    ),
    Row(
        "driver_older_than_cuda_runtime",
        5,
        r"\berror 35\b|update your gpu driver|driver[^\n]{0,40}(?:too old|outdated)",
    ),
    Row("driver_older_than_cuda_runtime", 2, r"\bdriver\b", ("driver_older_than_runtime",)),
    Row("forward_compat_on_geforce", 8, _E804),
    Row("forward_compat_on_geforce", 2, _E804, ("geforce",)),
    Row("compat_libcuda_shadows_driver", 6, _E804),
    Row(
        "compat_libcuda_shadows_driver", 8, r"cuda/compat|cuda-compat|compat/libcuda", also=_E804 + r"|error 803|driver"
    ),
    Row(
        "compat_libcuda_shadows_driver",
        8,
        r"libnvidia-container|nvidia-container-toolkit|nvidia-smi[^\n]{0,60}(?:shows?|reports?|says?)[^\n]{0,20}cuda",
        also=_E804,
    ),
    Row(
        "driver_userland_combo_803",
        9,
        r"error 803|unsupported display driver ?/ ?cuda driver combination|cudaerrorsystemdrivermismatch|cuda_error_system_driver_mismatch",
    ),
    Row(
        "ptx_jit_library_missing_or_unusable",
        9,
        r"ptx jit compiler library not found|cudaerrorjitcompilernotfound|cuda_error_jit_compiler_not_found|\berror 221\b",
    ),
    Row("ptx_jit_library_missing_or_unusable", 8, r"libnvidia-ptxjitcompiler|libnvidia-nvvm"),
    Row("wsl_libcuda_not_linked", 8, r"/usr/lib/wsl|libcuda[^\n]{0,40}is not a symbolic link"),
    Row("wsl_libcuda_not_linked", 6, r"\bwsl2?\b", also=r"libcuda|could not find cuda|cuda drivers? (?:not|can)"),
    Row("wsl_libcuda_not_linked", 4, r"libcuda\.so", ("wsl",)),
    Row("libcuda_link_name_missing", 9, r"cannot find -lcuda\b|unable to find library -lcuda\b"),
    Row(
        "libcuda_link_name_missing",
        8,
        r"libcuda\.so (?:cannot|can ?not|not|could not be) found|(?:cannot|can't|could not) find libcuda\.so\b(?!\.1)",
    ),
    Row("libcuda_link_name_missing", 7, r"libcuda\.so['\":]{0,4} ?:? ?(?:cannot open|no such file|not found)"),
    Row(
        "libcuda_missing_in_container",
        8,
        r"libcuda\.so\.1['\"]?:? (?:=> not found|cannot open shared object|no such file)|libcuda\.so\.1[^\n]{0,30}not found",
    ),
    Row("libcuda_missing_in_container", 3, r"libcuda\.so\.1[^\n]{0,60}(?:cannot open|not found)", ("container",)),
    Row(
        "libcuda_missing_in_container",
        6,
        r"found no nvidia driver on your system|no nvidia driver[^\n]{0,20}(?:found|detected)",
    ),
    Row(
        "libcuda_missing_in_container",
        5,
        r"failed to infer device type|nvidia driver was not detected|no nvidia gpu[^\n]{0,30}(?:found|detected)",
    ),
    Row("libcuda_missing_in_container", 3, r"no cuda gpus are available", ("container",)),
    # Containers
    Row(
        "container_cuda_requirement_unmet",
        10,
        r"unsatisfied condition: ?(?:cuda|driver|brand)|or use an earlier cuda container",
    ),
    Row("container_cuda_requirement_unmet", 8, r"requirement error|nvidia_require_cuda|nvidia_disable_require"),
    Row("nvidia_container_toolkit_missing", 9, r"could not select device driver|capabilities: ?\[\[gpu\]\]"),
    Row(
        "nvidia_container_toolkit_missing",
        9,
        r"unknown (?:or invalid )?runtime (?:name|specified):? ?\"?nvidia|runtime \"?nvidia\"? (?:is )?not found",
    ),
    Row(
        "nvidia_container_toolkit_missing",
        8,
        r"nvidia-container-(?:runtime|cli|toolkit)(?:-hook)?\"?'?:? [^\n]{0,40}(?:not found|no such file|not installed)",
    ),
    Row(
        "nvidia_container_toolkit_missing",
        8,
        r"no known gpu vendor|unknown flag: --gpus|unresolvable cdi devices|nvidia-docker: command not found",
    ),
    Row(
        "nvidia_uvm_device_missing",
        9,
        r"/dev/nvidia-uvm[^\n]{0,60}(?:missing|no such|does ?n.t exist|not (?:exist|found|present|created|there)|absent)",
    ),
    Row(
        "nvidia_uvm_device_missing",
        8,
        r"(?:no|missing|without|lacks?)[^\n]{0,20}/?(?:dev/)?nvidia-uvm|only[^\n]{0,40}/dev/nvidia0",
    ),
    Row("nvidia_uvm_device_missing", 5, r"nvidia-uvm|nvidia_uvm|nvidia-modprobe", unless=r"suspend|resume|hibernat"),
    Row("nvidia_uvm_device_missing", 4, _UNKNOWN, ("container",)),
    Row(
        "nvidia_uvm_device_missing",
        4,
        r"cudagetdevicecount returned|cuinit[^\n]{0,20}(?:fail|return|error)|no cuda-capable device",
    ),
    Row("cgroup_devices_lost_after_reload", 7, r"failed to initialize nvml: unknown error"),
    Row("cgroup_devices_lost_after_reload", 7, r"daemon-reload|systemd cgroup|native\.cgroupdriver|/dev/char"),
    Row(
        "cgroup_devices_lost_after_reload",
        5,
        r"los(?:e|es|t|ing) (?:access|(?:the )?gpus?)|(?:works|fine|ok)[^\n]{0,40}(?:at first|initially|then)",
    ),
    Row("cgroup_devices_lost_after_reload", 4, _LOST_HINT, also=r"nvml|no cuda|nvidia-smi"),
    Row(
        "lxc_nested_cgroup_denied",
        9,
        r"bpf_prog_(?:query|attach|load)|any existing device filters attached to the cgroup",
    ),
    Row(
        "lxc_nested_cgroup_denied",
        7,
        r"failed to (?:add|get|set) device (?:rules|cgroup)|cgroup subsystem devices not found|no-cgroups",
    ),
    Row(
        "lxc_nested_cgroup_denied",
        4,
        r"\b(?:lxc|lxd|incus|proxmox|rootless|unprivileged|nested)\b",
        also=r"nvidia-container|cgroup|nvml",
    ),
    Row("mig_uuid_not_parsed_by_engine", 10, r"invalid literal for int\(\)[^\n]{0,30}'(?:mig|gpu)-"),
    Row("mig_uuid_not_parsed_by_engine", 6, r"\bmig-[0-9a-f]{6,8}|mig[^\n]{0,20}uuid|uuid[^\n]{0,30}\bmig\b"),
    Row("mig_uuid_not_parsed_by_engine", 4, r"invalid device id|device_id_to_physical_device_id", also=r"\bmig\b"),
    Row(
        "ptx_jit_library_missing_or_unusable",
        6,
        r"ptx jit compiler library|jit compiler[^\n]{0,30}(?:missing|not found|unavailable)",
    ),
    Row("ptx_jit_library_missing_or_unusable", 4, r"ptx jit compil\w+ failed|error[^\n]{0,20}ptx jit"),
    Row(
        "nvidia_uvm_device_missing",
        6,
        r"nvidia-smi[^\n]{0,40}(?:works?|ok|fine|succeeds?|shows|runs?)\b",
        also=_UNKNOWN
        + r"|initialization error|cuinit|devicecount|no cuda-capable|is_available\(\)[^\n]{0,16}false|cuda (?:fails|does not|not)",
        unless=r"\+cpu|after|804|803",
    ),
    Row(
        "nvidia_uvm_device_missing",
        4,
        r"cuda (?:fails?|does(?: not|n't) work|programs? fail|init\w* fail\w*|not work\w*)[^\n]{0,30}(?:in|inside)[^\n]{0,12}(?:container|docker|pod)",
    ),
)
