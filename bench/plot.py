"""The plot of time over F against memory, as SVG: every word in a grey that can be read on white and on black."""

from statistics import median

WIDTH, HEIGHT = 800, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 784, 24, 288
GREY, BLUE, GREEN, RED = "#6e7781", "#0969da", "#1a7f37", "#cf222e"


def plot(measured, over_floor_max, aim):
    """`measured` is {memory in bytes: [time over F, one of each round]}."""
    memory_max = 1.05 * max(measured) / 1e9
    ratio_max = max(1.5, 1.1 * max(value for values in measured.values() for value in values))

    def across(memory_bytes):
        return round(LEFT + (RIGHT - LEFT) * memory_bytes / 1e9 / memory_max, 1)

    def up(ratio):
        return round(BOTTOM - (BOTTOM - TOP) * ratio / ratio_max, 1)

    points = {memory: (across(memory), up(median(values))) for memory, values in sorted(measured.items())}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-labelledby="title desc" font-family="Helvetica, Arial, sans-serif" font-size="13">',
        '<title id="title">Time over F against memory</title>',
        '<desc id="desc">' + ", ".join(f"{memory / 1e9:g} GB: {median(values):.2f}"
                                       for memory, values in sorted(measured.items())) + "</desc>",
        f'<path d="M{LEFT} {TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="{GREY}" stroke-width="1.5"/>',
    ]
    step = 0.25 if ratio_max <= 2.5 else 0.5
    for count in range(int(ratio_max / step) + 1):
        parts.append(text(LEFT - 8, up(count * step) + 4, f"{count * step:g}", "end"))
    for memory, (x, _) in points.items():
        parts.append(text(x, BOTTOM + 18, f"{memory / 1e9:.3g}", "middle"))
    parts.append(text((LEFT + RIGHT) / 2, HEIGHT - 10, "memory, GB", "middle"))
    parts.append(text(LEFT + 8, TOP - 8, "wall time over F: median of the rounds, least to most", "start"))
    for ratio, colour, words in ((1, GREY, "F"), (aim, GREEN, "aim"), (over_floor_max, RED, "at most")):
        parts.append(f'<path d="M{LEFT} {up(ratio)} H{RIGHT}" stroke="{colour}" stroke-dasharray="5 4" fill="none"/>')
        # The aim's word stands below its line, because F's line is near.
        parts.append(text(RIGHT, up(ratio) + (-4 if ratio > aim else 14 if ratio < aim else -3),
                          f"{words} {ratio:g}" if ratio != 1 else words, "end", colour))
    for memory, values in measured.items():
        x = points[memory][0]
        parts.append(f'<path d="M{x} {up(min(values))} V{up(max(values))}" stroke="{BLUE}" stroke-width="2"/>')
    way = " L".join(f"{x} {y}" for x, y in points.values())
    parts.append(f'<path d="M{way}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    parts += [f'<circle cx="{x}" cy="{y}" r="4" fill="{BLUE}"/>' for x, y in points.values()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(x, y, words, anchor, colour=GREY):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{words}</text>'
