# SPDX-License-Identifier: BSD-3-Clause
"""An archive's commands once more, on softhca as that device: what comes back, field by field, beside what the device said."""
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zlib

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
    """Of what was sent: there is a line for each command, and of those that were left out it says so."""
    lines = [line for line in played.splitlines() if line.startswith(("cmd ", "#"))]
    for (name, found), line in zip(answers(captured), lines):
        if line.startswith("#"):
            continue
        theirs = answers(line)[0][1]
        for field, value in found.items():
            other = theirs.get(field)
            if value != other:
                yield f"{name}: {field} is {value:#x}, softhca says {'nothing' if other is None else hex(other)}"


class Unreadable(Exception):
    """The archive is none of the kit's; its text says why."""


def opened(archive):
    """(capture as text, profile or None, gdr_info's text of the NIC) of an archive, which may be anything."""
    try:
        with tarfile.open(archive) as tar:
            text = tar.extractfile("kit/capture.txt").read().decode() if "kit/capture.txt" in tar.getnames() else ""
            found = json.load(tar.extractfile("kit/found.json"))
        profile, nic = found["profile"], found["device"]
    except (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError) as error:
        why = getattr(error, "strerror", None) or "it is no archive, or was cut short"
        raise Unreadable(f"cannot read {archive}: {why}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(f"cannot read {archive}: its kit/found.json or kit/capture.txt is not as the kit writes it") from error
    if not isinstance(profile, (str, type(None))) or not isinstance(nic, str):
        raise Unreadable(f"cannot read {archive}: its kit/found.json names no device")
    return text, profile, nic


def play(before, env, text):
    """What softhca answers, as a capture; None: it could not be asked, which was said."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "capture.txt")
        pathlib.Path(path).write_text(text)
        feed = pathlib.Path(__file__).with_name("feed.py")
        try:
            done = subprocess.run([*before, sys.executable, str(feed), path], env=env, capture_output=True, text=True,
                                  timeout=120, check=False)
        except subprocess.TimeoutExpired:
            print("nothing was replayed: feed.py did not end within 120 s")
            return None
    if done.returncode:
        print(f"nothing was replayed: feed.py ended with status {done.returncode}: {''.join(done.stderr.splitlines()[-1:])}")
        return None
    return done.stdout


def replay(tree, archive, device):
    """Status: 0 no difference, 1 there are some, 2 nothing was sent. Unreadable: the archive is none."""
    text, profile, nic = opened(archive)
    device = device or profile
    env, before = steps.on_softhca(tree, device, nic)
    commands = rings.Capture(text).commands
    if not commands or not device or not before:
        why = "softhca has no profile of the device: --device" if before else "this tree has no softhca"
        print("nothing to replay: " + (why if commands else "the archive holds no whole command"))
        return 2
    played = play(before, env, text)
    if played is None:
        return 2
    left = [line for line in played.splitlines() if line.startswith("#")]
    cut = sum(line.startswith("cmd") for line in text.splitlines()) - len(commands)
    if cut:
        left.append(f"# commands that were cut short in the archive, left out: {cut}")
    if not rings.Capture(played).commands:
        print("\n".join(["nothing to replay: no command could be sent", *left]))
        return 2
    lines = list(differences(text, played))
    print(f"{len(rings.Capture(played).commands)} commands on softhca as {device}: {len(lines)} differences")
    print("\n".join([*lines, *left]), end="\n" if lines or left else "")
    return 1 if lines else 0
