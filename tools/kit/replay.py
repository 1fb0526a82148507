# SPDX-License-Identifier: BSD-3-Clause
"""An archive's commands once more, on softhca as that device: what comes back, field by field, beside what the device said."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import prm
import rings
import steps


def answers(text):
    """[(name, {field: value})] in the order of the commands."""
    out, counts = [], {}
    for _, err, sent, got in rings.Capture(text).commands:
        name = prm.opcode(sent)
        if name == "QUERY_HCA_CAP":
            name += f" {prm.get(sent, *prm.FIELDS['IN_OP_MOD']) >> 1:#x}"
        counts[name] = counts.get(name, 0) + 1
        found = {"errno": err, "status": prm.get(got, *prm.FIELDS["OUT_STATUS"]),
                 "syndrome": prm.get(got, *prm.FIELDS["OUT_SYNDROME"])}
        found.update(prm.fields(got, prm.shape(prm.opcode(sent), sent)[1]))
        out.append((f"{name} #{counts[name]}", found))
    return out


def differences(captured, played):
    theirs = dict(answers(played))
    for name, found in answers(captured):
        if name not in theirs:
            yield f"{name}: was not sent"
            continue
        for field, value in found.items():
            other = theirs[name].get(field)
            if value != other:
                yield f"{name}: {field} is {value:#x}, softhca says {'nothing' if other is None else hex(other)}"


def replay(tree, archive, device):
    """Status: 0 no difference, 1 there are some, 2 it could not be done."""
    with tarfile.open(archive) as tar:
        text = tar.extractfile("kit/capture.txt").read().decode() if "kit/capture.txt" in tar.getnames() else ""
        found = json.load(tar.extractfile("kit/found.json"))
    device = device or found["profile"]
    env, before = steps.on_softhca(tree, device, found["device"])
    if not text.strip() or not device or not before:
        why = "softhca has no profile of the device: --device" if before else "this tree has no softhca"
        print("nothing to replay: " + (why if text.strip() else "no commands were captured"))
        return 2
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "capture.txt")
        pathlib.Path(path).write_text(text)
        feed = pathlib.Path(__file__).with_name("feed.py")
        done = subprocess.run([*before, sys.executable, str(feed), path], env=env, capture_output=True, text=True,
                              timeout=120, check=False)
    if done.returncode:
        print(f"feed.py ended with status {done.returncode}: {done.stderr}", end="")
        return 2
    lines = list(differences(text, done.stdout))
    left = [line for line in done.stdout.splitlines() if line.startswith("#")]
    print(f"{len(rings.Capture(text).commands)} commands on softhca as {device}: {len(lines)} differences")
    print("\n".join([*lines, *left]), end="\n" if lines or left else "")
    return 1 if lines else 0
