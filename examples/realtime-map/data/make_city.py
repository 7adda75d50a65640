#!/usr/bin/env python3
"""Draws Thingvik, a coastal city that does not exist: water, parks, streets, routes, stops and geofences.

Standard library only and a fixed seed, so `python3 make_city.py > city.json` gives the committed file again. Distances are in
metres around the centre; the file holds [lon, lat, lon, lat, ...] in hundred-thousandths of a degree (about one metre).
"""
import heapq, json, math, random

SEED, LAT, LON = 7, 60.20, 20.60
GRID, JITTER, WIDTH, HEIGHT = 620, 120, 13_500, 9_500
random.seed(SEED)


def coast(x):
    """Northing of the shore at easting x: waves, and two bays that reach into the city."""
    waves = 700 * math.sin(x / 2_700 + 0.6) + 320 * math.sin(x / 940) + 140 * math.sin(x / 410 + 2)
    bays = 4_300 * math.exp(-(((x + 4_700) / 950) ** 2)) + 3_300 * math.exp(-(((x - 5_200) / 780) ** 2))
    return -3_600 + waves + bays - 0.05 * abs(x)


def blob(x, y, radius, points=40, rough=0.16):
    phases = [random.uniform(0, 6.28) for _ in range(4)]
    ring = []
    for k in range(points):
        angle = 2 * math.pi * k / points
        wobble = sum(math.sin((n + 2) * angle + phase) / (n + 1.5) for n, phase in enumerate(phases))
        ring.append((x + radius * (1 + rough * wobble) * math.cos(angle) * 1.25, y + radius * (1 + rough * wobble) * math.sin(angle)))
    return ring


def inside(point, ring):
    x, y = point
    hit = False
    for (x1, y1), (x2, y2) in zip(ring, ring[1:] + ring[:1]):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            hit = not hit
    return hit


sea = [(x, coast(x)) for x in range(-16_000, 16_001, 160)] + [(16_000, -12_500), (-16_000, -12_500)]
islands = [blob(x, y, r) for x, y, r in [(-1_200, -6_600, 620), (1_500, -7_300, 900), (4_200, -6_400, 430), (-6_400, -7_600, 760), (7_800, -7_200, 560), (-3_300, -8_300, 330)]]
lakes = [blob(-6_800, 5_600, 1_150), blob(8_600, 4_300, 900), blob(900, 7_800, 480)]
parks = [blob(x, y, r) for x, y, r in [(-1_500, 2_300, 700), (2_900, 1_900, 520), (-8_300, 1_400, 900), (6_200, 7_200, 1_100), (300, -1_900, 260), (-3_600, 6_500, 800), (10_200, 900, 760)]]


def is_land(point):
    return point[1] > coast(point[0]) + 140 and not any(inside(point, lake) for lake in lakes)


def street_graph():
    nodes = {}
    for i in range(-WIDTH // GRID, WIDTH // GRID + 1):
        for j in range(-HEIGHT // GRID, HEIGHT // GRID + 1):
            turn = 0.28 * math.exp(-math.hypot(i, j) / 9) - 0.06
            x, y = i * GRID, j * GRID
            x, y = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
            point = (x + random.uniform(-JITTER, JITTER), y + random.uniform(-JITTER, JITTER))
            if is_land(point):
                nodes[i, j] = point
    edges = {node: {} for node in nodes}
    for (i, j), point in nodes.items():
        for other in [(i + 1, j), (i, j + 1), (i + 1, j + 1)]:
            if other not in nodes:
                continue
            middle = ((point[0] + nodes[other][0]) / 2, (point[1] + nodes[other][1]) / 2)
            far = math.hypot(*middle) / 12_000
            drop = 0.90 if other == (i + 1, j + 1) else 0.08 + 0.30 * far
            if random.random() < drop or not is_land(middle):
                continue
            length = math.dist(point, nodes[other])
            angle = math.atan2(middle[1], middle[0]) * 8 / (2 * math.pi)
            radial = abs(angle - round(angle)) * math.hypot(*middle) * 2 * math.pi / 8 < 420
            ring = any(abs(math.hypot(*middle) - r) < 330 for r in (3_200, 6_300, 9_300))
            edges[i, j][other] = edges[other][i, j] = length * (0.55 if radial else 0.62 if ring else 1)
    seen, stack = set(), [min(nodes, key=lambda n: math.hypot(*nodes[n]))]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(edges[node])
    return {n: nodes[n] for n in seen}, {n: edges[n] for n in seen}


NODES, EDGES = street_graph()


def nearest(x, y):
    return min(NODES, key=lambda n: math.dist(NODES[n], (x, y)))


def shortest(start, end):
    queue, best, back = [(0, start)], {start: 0}, {}
    while queue:
        cost, node = heapq.heappop(queue)
        if node == end:
            break
        for other, length in EDGES[node].items():
            if cost + length < best.get(other, math.inf):
                best[other], back[other] = cost + length, node
                heapq.heappush(queue, (cost + length, other))
    path = [end]
    while path[-1] != start:
        path.append(back[path[-1]])
    return path[::-1]


def by_street(*places):
    nodes = [nearest(*place) for place in places]
    path = [nodes[0]]
    for a, b in zip(nodes, nodes[1:]):
        path += shortest(a, b)[1:]
    return [NODES[n] for n in path]


def smooth(line, rounds=2):
    for _ in range(rounds):
        cut = [line[0]]
        for (x1, y1), (x2, y2) in zip(line, line[1:]):
            cut += [(0.8 * x1 + 0.2 * x2, 0.8 * y1 + 0.2 * y2), (0.2 * x1 + 0.8 * x2, 0.2 * y1 + 0.8 * y2)]
        line = cut + [line[-1]]
    return line


def length(line):
    return sum(math.dist(a, b) for a, b in zip(line, line[1:]))


def stops(line, spacing):
    count = max(2, round(length(line) / spacing))
    return [round(length(line) * k / count) for k in range(count + 1)]


def flat(line):
    out = []
    for x, y in line:
        lat = LAT + y / 111_320
        out += [round((LON + x / (111_320 * math.cos(math.radians(LAT)))) * 1e5), round(lat * 1e5)]
    return out


routes = []
NAMES = ["Lögberg", "Almannagjá", "Ting Square", "East Harbour", "Mossfell", "Grimsnes", "Kersey", "Witan Park", "Northgate", "Saltholm", "Alder Lake", "Foundry", "Old Mill", "Ness", "Hollow Hill", "Brightwater", "Skerry Quay", "Tanners' Row", "Observatory", "Quarry", "Westmoor", "Lindholm", "Ravensby", "Fairlead"]


def route(line_name, mode, operator, points, spacing, rounds=2):
    points = smooth(points, rounds)
    if length(points) < 2_000:
        return
    names = random.sample(NAMES, 2)
    routes.append({"id": f"{len(routes) + 1001}", "line": line_name, "mode": mode, "operator": operator, "headsigns": names, "path": flat(points), "stops_m": stops(points, spacing)})


def polar(radius, degrees):
    return radius * math.cos(math.radians(degrees)), radius * math.sin(math.radians(degrees))


for k, (a, b) in enumerate([(10, 200), (55, 180), (95, 330), (140, 350), (30, 120), (75, 215), (160, 20), (110, 5)]):
    route(str(k + 1), "tram", 40, by_street(polar(random.uniform(3_500, 5_200), a), polar(600, (a + b) / 2), polar(random.uniform(3_200, 5_000), b)), 380)
for k in range(30):
    angle = k * 180 / 30 + random.uniform(-3, 3)
    reach = random.uniform(6_500, 11_500)
    ends = polar(reach, angle), polar(random.uniform(1_500, 8_500), angle + random.uniform(110, 190) if k % 3 else angle + 60)
    route(str(11 + k * 7), "bus", [12, 18, 22, 30][k % 4], by_street(ends[0], polar(random.uniform(400, 2_400), angle + 40), ends[1]), 430)
for name, radius in [("500", 3_200), ("510", 6_300), ("560", 8_800)]:
    arc = [polar(radius, degrees) for degrees in range(-8, 189, 14) if is_land(polar(radius, degrees))]
    route(name, "bus", 22, by_street(*arc), 600)
route("M1", "metro", 50, [(-11_800, 700), (-8_000, -300), (-3_400, 900), (-400, 250), (2_600, 450), (6_800, 2_400), (11_500, 2_000)], 1_150, 3)
route("M2", "metro", 50, [(-5_200, 8_400), (-3_000, 5_200), (-800, 2_700), (-400, 250), (900, -1_500), (2_600, -2_500)], 1_000, 3)
route("A", "train", 90, [(-300, 500), (-200, 2_600), (1_600, 5_600), (2_400, 9_400)], 2_100, 3)
route("U", "train", 90, [(-300, 500), (-1_000, 2_600), (-5_400, 3_300), (-12_600, 4_400)], 2_600, 3)
route("K", "train", 90, [(-300, 500), (200, 2_400), (4_900, 4_800), (12_400, 6_700)], 2_600, 3)
for name, x, y in [("F1", -1_200, -5_900), ("F2", 1_500, -6_250), ("F3", 4_200, -5_900)]:
    route(name, "ferry", 60, [(-300, coast(-300) - 60), (200, -5_000), ((x + 300) / 2, -5_600), (x, y)], 4_000, 3)

streets, done = [], set()
for node in sorted(EDGES):
    for other in sorted(EDGES[node]):
        if (other, node) in done or (node, other) in done:
            continue
        line = [node, other]
        done.add((node, other))
        while True:  # follow straight on, so that a street is one line
            (x1, y1), (x2, y2) = NODES[line[-2]], NODES[line[-1]]
            ahead = [n for n in EDGES[line[-1]] if (line[-1], n) not in done and (n, line[-1]) not in done]
            turn = lambda n: abs((math.atan2(NODES[n][1] - y2, NODES[n][0] - x2) - math.atan2(y2 - y1, x2 - x1) + 3.1416) % 6.2832 - 3.1416)
            ahead = [n for n in ahead if turn(n) < 0.5]
            if not ahead:
                break
            best = min(ahead, key=turn)
            done.add((line[-1], best))
            line.append(best)
        streets.append(flat(smooth([NODES[n] for n in line], 1)))

def fence(key, name, x, y, radius):
    lon, lat = flat([(x, y)])
    return {"id": key, "name": name, "lat": lat / 1e5, "lon": lon / 1e5, "radius_m": radius}


west, south, east, north = flat([(-13_400, -8_900), (13_400, 9_300)])
print(json.dumps({
    "name": "Thingvik",
    "bounds": [west / 1e5, south / 1e5, east / 1e5, north / 1e5],
    "water": [flat(ring) for ring in [sea] + lakes],
    "islands": [flat(ring) for ring in islands],
    "parks": [flat(ring) for ring in parks],
    "streets": streets,
    "operators": [{"id": i, "name": n} for i, n in [(12, "Ting Buses"), (18, "Mossfell Coaches"), (22, "Nordlinje"), (30, "Ravensby Bus Co-op"), (40, "Thingvik Trams"), (50, "Thingvik Metro"), (60, "Skerry Ferries"), (90, "Coast Rail")]],
    "routes": routes,
    "fences": [fence("ting-square", "Ting Square", -300, 350, 420), fence("east-harbour", "East Harbour", 2_700, -2_300, 650), fence("witan-park", "Witan Park", -1_500, 2_300, 800), fence("alder-lake", "Alder Lake", -5_300, 4_300, 900), fence("foundry", "Foundry", 5_200, 3_300, 700), fence("northgate", "Northgate", 900, 5_600, 800)],
}, ensure_ascii=False, separators=(",", ":")))
