# SPDX-License-Identifier: BSD-3-Clause
"""What the machine is, from files and commands that any user may read: {name: text}. What is not there is left out."""
import ctypes
import glob
import os
import platform
import re
import resource
import subprocess

DEVICE = ("fw_ver", "board_id", "hw_rev", "device/vendor", "device/device", "device/current_link_speed",
          "device/current_link_width", "device/max_link_speed", "device/max_link_width", "device/numa_node",
          "device/sriov_numvfs", "device/iommu_group/type")
PORT = ("state", "phys_state", "rate", "link_layer", "cap_mask", "lid")
COMMANDS = {  # their output, where they are there
    "nvidia-smi": ["nvidia-smi", "--query-gpu=index,name,driver_version,pci.bus_id,memory.total", "--format=csv"],
    "nvidia-smi topo": ["nvidia-smi", "topo", "-m"],
    "ibv_devinfo": ["ibv_devinfo", "-v"],
    "rdma link": ["rdma", "link"],
    "mlxfwmanager": ["mlxfwmanager", "--query"],
}


def line(path):
    try:
        with open(path, errors="replace") as f:
            return f.readline().strip()
    except OSError:
        return None


def folder(path):
    """Names in a folder. By opendir alone, as open and realpath below: what softhca shows is not there for stat."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def resolved(path):
    libc = ctypes.CDLL(None)
    libc.realpath.restype = ctypes.c_char_p
    return (libc.realpath(path.encode(), ctypes.create_string_buffer(4096)) or b"").decode()


def infiniband(found):
    devices = "/sys/class/infiniband"
    names = folder(devices)
    for name in names:
        for item in DEVICE:
            found[f"{name} {item.replace('device/', 'pci ')}"] = line(f"{devices}/{name}/{item}")
        for port in ("1", "2"):
            base = f"{devices}/{name}/ports/{port}"
            for item in PORT:
                found[f"{name}:{port} {item}"] = line(f"{base}/{item}")
            types = list(filter(None, (line(f"{base}/gid_attrs/types/{i}") for i in range(256))))
            if types:
                found[f"{name}:{port} gids"] = ", ".join(f"{types.count(t)} {t}" for t in sorted(set(types)))
            for counter in folder(f"{base}/hw_counters"):
                found[f"{name}:{port} {counter}"] = line(f"{base}/hw_counters/{counter}")
        path = resolved(f"{devices}/{name}/device")
        parts = re.findall(r"pci[0-9a-f]{4}:[0-9a-f]{2}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", path)
        found[f"{name} pci path"] = "/".join(parts)
    found["RDMA devices"] = ", ".join(names) or "none"


def host(found):
    found["kernel"] = platform.release()
    found["architecture"] = platform.machine()
    found["page size"] = str(os.sysconf("SC_PAGESIZE"))
    found["CPUs of this process"] = str(len(os.sched_getaffinity(0)))
    found["NUMA nodes"] = line("/sys/devices/system/node/online")
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    found["locked memory"] = "no limit" if soft == resource.RLIM_INFINITY else f"{soft >> 10} KiB"
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo", errors="replace").read())
    found["CPU"] = cpu.group(1) if cpu else None
    words = re.findall(r"\S*(?:iommu|pci=)\S*", line("/proc/cmdline") or "")
    found["kernel command line, IOMMU and PCI"] = " ".join(words) or "nothing"
    found["IOMMU groups"] = str(len(glob.glob("/sys/kernel/iommu_groups/*")))
    for module in ("mlx5_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem", "gdrdrv"):
        there = os.path.isdir(f"/sys/module/{module}")
        found[f"module {module}"] = (line(f"/sys/module/{module}/version") or "loaded") if there else "not loaded"
    found["GPU driver"] = line("/proc/driver/nvidia/version")


def commands(found):
    for name, command in COMMANDS.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, errors="replace")
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout:
            found[name] = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)[:20000]  # nvidia-smi underlines


def collect():
    found = {}
    host(found)
    infiniband(found)
    commands(found)
    return {k: v for k, v in found.items() if v}
