# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file without anything from outside, pictures as SVG."""
import html
import re

import compare
import steps as runs

STYLE = """body{font:14px/1.4 sans-serif;max-width:72em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:.5em 0}td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left}
td.v{font-family:monospace;overflow-wrap:anywhere}.equal,.passed,.ok{background:#dcf3dc}
.differs,.failed,.fail{background:#fbdada}.unknown,.unseen{background:#eee}.note{background:#fdf3cf}"""
COLOURS = {"equal": "#4a4", "differs": "#c33", "unknown": "#aaa"}


def e(value):
    return html.escape("" if value is None else str(value))


def table(head, rows, cls=None):
    """rows: lists of cells; cls: which cell names the class of its row's mark."""
    out = ["<table><tr>", *(f"<th>{e(h)}</th>" for h in head), "</tr>"]
    for row in rows:
        cells = (f'<td class="{e(c) if i == cls else "v"}">{e(c)}</td>' for i, c in enumerate(row))
        out += ["<tr>", *cells, "</tr>"]
    return "".join(out + ["</table>"])


def bar(numbers):
    """How many are equal, differ, are unknown."""
    total, x, out = sum(numbers.values()) or 1, 0.0, []
    for name, n in numbers.items():
        width = 700 * n / total
        out.append(f'<rect x="{x:.1f}" width="{width:.1f}" height="26" fill="{COLOURS[name]}"/>')
        if width > 70:
            out.append(f'<text x="{x + 5:.1f}" y="18" fill="#fff" font-size="13">{n} {name}</text>')
        x += width
    return f'<svg width="700" height="26" role="img">{"".join(out)}</svg>'


def topology(machine):
    """A row of boxes for each device: from the host bridge down to it."""
    paths = [(name[:-9], path) for name, path in sorted(machine.items()) if name.endswith(" pci path") and path]
    out = []
    for y, (name, path) in enumerate(paths):
        parts = path.split("/")
        for x, part in enumerate([*parts[:-1], f"{name} {parts[-1]}"]):
            left, top = 10 + 175 * x, 10 + 50 * y
            if x:
                out.append(f'<line x1="{left - 25}" y1="{top + 15}" x2="{left}" y2="{top + 15}" stroke="#555"/>')
            out.append(f'<rect x="{left}" y="{top}" width="150" height="30" fill="#eef" stroke="#55a"/>'
                       f'<text x="{left + 6}" y="{top + 20}" font-size="11">{e(part)}</text>')
    width = max([len(p.split("/")) for _, p in paths] or [0]) * 175 + 10
    return f'<svg width="{width}" height="{len(paths) * 50 + 10}" role="img">{"".join(out)}</svg>' if paths else \
        "<p>No RDMA device was seen.</p>"


def figures(steps):
    """[(step, name, value, unit)] of all lines RESULT."""
    pattern = re.compile(r"^RESULT (\S+) (\S+) (\S+)", re.M)
    return [(name, *m) for name, step in steps.items() for m in pattern.findall(step["text"])]


def curve(rows):
    """Posts a second by size, a line for who rings."""
    points = {}
    for step, name, value, _ in rows:
        if name.startswith("put.rate."):
            points.setdefault(step, []).append((int(name.rsplit(".", 1)[1]), float(value)))
    if not points:
        return ""
    top = max(v for line in points.values() for _, v in line)
    out = []
    for i, (step, line) in enumerate(points.items()):
        xy = [(60 + 160 * j, 200 - 180 * v / top) for j, (_, v) in enumerate(line)]
        colour = ("#33a", "#a63", "#2a7", "#a2a")[i % 4]
        out.append(f'<polyline fill="none" stroke="{colour}" points="{" ".join(f"{x:.0f},{y:.0f}" for x, y in xy)}"/>')
        out.append(f'<text x="330" y="{20 + 16 * i}" font-size="12" fill="{colour}">{e(step)}</text>')
        out += [f'<text x="{x - 12:.0f}" y="216" font-size="11">{size} B</text>' for (x, _), (size, _) in zip(xy, line)]
    return f'<svg width="620" height="222" role="img"><text x="2" y="20" font-size="11">{top:.3g}/s</text>{"".join(out)}</svg>'


def doorbells(steps):
    """A line for each way of ringing: its figures, by how much they are above or below the first one's, and what gdr says
    of the way, which a device may refuse."""
    found = {step: {} for step in runs.DOORBELLS if step in steps}
    for step, name, value, unit in figures(steps):
        if step in found:
            found[step][name] = float(value), unit
    first = next((f for f in found.values() if f), {})
    if not first:
        return ""
    rows = []
    for step, own in found.items():
        cells = (f"{own[n][0]:.4g}" + (f" ({100 * own[n][0] / v - 100:+.0f} %)" if own is not first else "")
                 if n in own else "not seen" for n, (v, _) in first.items())
        rows.append((step, *cells, "; ".join(re.findall(r"info: \S+: doorbells: (.*)", steps[step]["text"]))))
    return table(("run", *(f"{n}, {unit}" for n, (_, unit) in first.items()), "gdr says"), rows)


def summary(found):
    rows = found["comparison"]
    where = f"softhca as {found['profile']}" if found["profile"] else "nothing: softhca has no profile of this device"
    return [f"<h1>gdr hardware kit: {e(found['device'] or 'no RDMA device')}</h1>",
            f"<p>gdr {e(found['version'])}, {e(found['date'])}; compared with {e(where)}.</p>",
            bar(compare.counts(rows)), "<h2>What could not be seen</h2><ul>",
            *(f"<li>{e(text)}</li>" for text in found["unseen"] or ["everything was seen"]), "</ul>"]


def page(found):
    rows, steps = found["comparison"], found["steps"]
    differs = [r for r in rows if r["verdict"] == "differs"]
    out = [f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>gdr hardware kit</title><style>{STYLE}</style>"]
    out += summary(found)
    out += ["<h2>Differs from softhca</h2>", table(("item", "seen", "softhca", "modelled in"), [
        (r["name"], r["seen"], r["predicted"], r["model"]) for r in differs]) if differs else "<p>Nothing.</p>"]
    out += ["<h2>Runs</h2>", table(("run", "result", "s", "said"), [
        (n, s["state"], s["seconds"], s["text"].strip()[-400:]) for n, s in steps.items()], 1)]
    out += ["<h2>Posting</h2>", curve(figures(steps)), doorbells(steps), table(("run", "figure", "value", "unit"), figures(steps))]
    out += ["<h2>gdr_info --check</h2>", table(("name", "verdict", "value", "right", "fix"), [
        (c["name"], c["verdict"], c["value"], c["right"], c["fix"]) for c in found["checks"]], 1)]
    out += ["<h2>Where the devices are</h2>", topology(found["machine"])]
    out += ["<h2>Machine</h2>", table(("item", "value"), sorted(found["machine"].items()))]
    out += ["<h2>All items</h2>", table(("item", "verdict", "seen", "softhca"), [
        (r["name"], r["verdict"], r["seen"], r["predicted"] if r["verdict"] != "equal" else "") for r in rows], 1)]
    return "\n".join(out) + "\n"
