"""Grouped bars with whiskers as an SVG file, without any library. A module of the bench_*.py scripts."""
COLOURS = ("#1b6ca8", "#7fb069", "#c0c4c8")
WIDTH, BAR, GAP, TOP, PLOT, BOTTOM, LEFT = 960, 29, 22, 70, 320, 110, 70


def nice_top(value):
    """A round number not below the value."""
    step = 10 ** (len(str(int(value))) - 1)
    return (int(value / step) + 1) * step


def bar(x, spread, top, colour):
    height = spread["median"] / top * PLOT
    base = TOP + PLOT
    low, high = (base - spread[k] / top * PLOT for k in ("min", "max"))
    middle = x + BAR / 2
    return (f'<rect x="{x}" y="{base - height:.1f}" width="{BAR}" height="{height:.1f}" '
            f'fill="{colour}"/>'
            f'<path d="M{middle} {low:.1f}V{high:.1f}" stroke="#333"/>'
            f'<text x="{middle}" y="{min(high, base - height) - 5:.1f}" font-size="9" '
            f'text-anchor="middle">{spread["median"]:.0f}</text>')


def axis(top, width):
    parts = []
    for i in range(6):
        y = TOP + PLOT - PLOT * i / 5
        parts.append(f'<path d="M{LEFT} {y:.1f}H{width - 20}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" '
                     f'font-size="11">{top * i / 5:.0f}</text>')
    return parts


def legend(series):
    return [f'<rect x="{LEFT + i * 110}" y="44" width="12" height="12" fill="{COLOURS[i]}"/>'
            f'<text x="{LEFT + i * 110 + 17}" y="54" font-size="12">{name}</text>'
            for i, name in enumerate(series)]


def write_bars(path, groups, series, title, subtitle):
    """groups: {name: [{"median", "min", "max"}, one for each of the series]}"""
    group_width = BAR * len(series) + GAP
    width = max(WIDTH, LEFT + group_width * len(groups) + 40)
    top = nice_top(max(s["max"] for bars in groups.values() for s in bars))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + PLOT + BOTTOM}" '
             f'font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="{LEFT}" y="20" font-size="15">{title}</text>'
             f'<text x="{LEFT}" y="36" font-size="11" fill="#666">{subtitle}</text>']
    parts += legend(series) + axis(top, width)
    step = (width - LEFT - 40) / len(groups)
    for i, (name, bars) in enumerate(groups.items()):
        x = LEFT + i * step + (step - BAR * len(series)) / 2
        parts += [bar(x + j * BAR, s, top, COLOURS[j]) for j, s in enumerate(bars)]
        middle, y = x + BAR * len(series) / 2, TOP + PLOT + 16
        parts.append(f'<text x="{middle:.0f}" y="{y}" font-size="11" text-anchor="end" '
                     f'transform="rotate(-25 {middle:.0f} {y})">{name}</text>')
    with open(path, "w") as f:
        f.write("\n".join(parts) + "\n</svg>\n")
