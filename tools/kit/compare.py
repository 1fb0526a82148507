# SPDX-License-Identifier: BSD-3-Clause
"""What was seen against what softhca does as that device: (name, seen, predicted, verdict, where softhca models it)."""
import re

# Major firmware release of each profile (softhca/tools/profile.c).
PROFILES = {16: "cx5", 22: "cx6dx", 28: "cx7", 40: "cx8", 32: "bf3"}

MODELS = [  # where softhca models it, by the beginning of the name
    (r"cap\.GENERAL_(OOO|LAG|NO_UMR|RELAXED_ONLY|ECE)|cap\.GENERAL_2_|cap\.ROCE_FL|command\..*_ECE$",
     "softhca/tools/device_caps.def"),
    (r"cap\.", "softhca/firmware/prm_caps.c"),
    (r"command\.CREATE_CQ", "softhca/firmware/prm_cq.c"),
    (r"command\.CREATE_QP|command\.QUERY_QP", "softhca/firmware/prm_qp.c"),
    (r"command\.(RST2INIT|INIT2RTR|RTR2RTS|2RST)_QP", "softhca/firmware/prm_qp_modify.c"),
    (r"command\.CREATE_MKEY", "softhca/firmware/prm_mkey.c"),
    (r"command\.", "softhca/firmware/prm.c"),
    (r"wqe\.", "softhca/transport/wqe.c"),
    (r"cqe\.", "softhca/transport/rc_complete.c"),
    (r"check\.(adaptive-routing|lag|atomics)$", "softhca/tools/device_caps.def"),
    (r"check\.", "softhca/driver/sysfs_tree.cmake"),
    (r"step\.", "softhca/transport/rc.c"),
]
# softhca predicts nothing of these.
OF_THE_SITE = {"memlock", "capabilities", "rdma-modules", "rdma-files", "numa", "iommu", "acs", "roce-pfc", "roce-dscp",
               "roce-ecn", "losses", "gid", "libfabric", "nic", "pcie-link"}


def profile(firmware):
    """The profile of a device, by its firmware release; None: softhca has none."""
    major = re.match(r"(\d+)\.", firmware or "")
    return PROFILES.get(int(major.group(1))) if major else None


def model(name):
    return next(path for pattern, path in MODELS if re.match(pattern, name))


def compare(seen, predicted):
    rows = []
    for name in sorted(set(seen) | set(predicted)):
        a, b = seen.get(name), predicted.get(name)
        if a is None or b is None or name.startswith("check.") and name[6:] in OF_THE_SITE:
            verdict = "unknown"
        else:
            verdict = "equal" if a == b else "differs"
        rows.append({"name": name, "seen": a, "predicted": b, "verdict": verdict,
                     "model": model(name) if verdict == "differs" else ""})
    return rows


def counts(rows):
    return {v: sum(r["verdict"] == v for r in rows) for v in ("equal", "differs", "unknown")}
