"use strict";

/* Lines over releases, drawn as SVG: medians with bands of their intervals, launches as dots, rules where something
   happened. What is nearest to the pointer says its numbers. Colours are those of the style sheet, so they follow the theme. */
(() => {
    const TH = window.torchHistory;
    const {el, svg} = TH;

    const HEIGHT = 320;
    const EDGE = {top: 24, right: 16, bottom: 62, left: 66};
    const DRAGGED = 24;  // pixels from which on a range is meant
    const LEAST_GAP = {x: 18, y: 14};
    const LETTER = 7;  // how wide one is at most, in the labels of events
    const TICKS = 5;
    const PAD = 0.06;
    const MOST_MARKS = 2000;
    const COLOURS = 8;
    const SYMBOLS = {
        "circle": "M0,-7A7,7,0,1,1,0,7A7,7,0,1,1,0,-7Z",
        "square": "M-6,-6H6V6H-6Z",
        "triangle-up": "M-8,6L0,-8L8,6Z",
        "diamond": "M-8,0L0,-8L8,0L0,8Z",
        "cross": "M-8,-3H-3V-8H3V-3H8V3H3V8H-3V3H-8Z",
        "triangle-down": "M-8,-6L0,8L8,-6Z",
        "triangle-right": "M-6,-8L8,0L-6,8Z",
        "triangle-left": "M6,-8L-8,0L6,8Z",
    };
    const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]
        .map(([of, prefix]) => ({of: Number(of), prefix}));

    // --- colours and shapes of variants

    const shapeOf = (slot) => {
        const shapes = Object.keys(SYMBOLS);
        return SYMBOLS[shapes[(slot + Math.floor(slot / COLOURS)) % shapes.length]];
    };
    const colourOf = (slot) => `series-${slot % COLOURS}`;
    TH.swatch = (slot) => svg("svg", {viewBox: "-10 -10 20 20", class: `swatch ${colourOf(slot)}`, "aria-hidden": "true"},
                              svg("path", {d: shapeOf(slot)}));

    // --- words

    /* Three digits and a prefix of a thousand: 1.94 G, 37.7 m. */
    const prefixed = (value) => {
        const {of, prefix} = PREFIXES.find((each) => Math.abs(value) >= each.of * 0.9995) || PREFIXES.at(-1);
        return value === 0 ? ["0", ""] : [(value / of).toPrecision(3), prefix];
    };
    const rounded = (value) => {
        const [number, prefix] = prefixed(value);
        return [String(Number(number)), prefix];
    };
    /** `1.94 GB`, in powers of ten. @param {number} value */
    TH.bytes = (value) => (Math.abs(value) < 1000 ? `${value.toLocaleString("en")} B` : `${prefixed(value).join(" ")}B`);
    const tickWords = {
        seconds: (value) => `${rounded(value).join("")}s`,
        bytes: (value) => `${rounded(value).join(" ")}B`,
        relative: (value) => `${tickWords.ratio(value)}×`,
        ratio: (value) => value.toLocaleString("en", {maximumSignificantDigits: 3}),
        count: (value) => value.toLocaleString("en"),
    };

    // --- scales

    /** @param {number[]} domain @param {boolean} isWhole */
    const linearTicks = ([low, high], isWhole) => {
        const rough = (high - low) / TICKS;
        const power = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
        const by = isWhole ? Math.max(1, Math.round(step)) : step;
        const [first, last] = [Math.ceil(low / by - 1e-9), Math.floor(high / by + 1e-9)];
        return Array.from({length: Math.max(0, last - first + 1)}, (_, i) => Number(((first + i) * by).toPrecision(12)));
    };
    /** @param {number[]} domain @param {boolean} isWhole */
    const logTicks = ([low, high], isWhole) => {
        const decades = Math.log10(high / low);
        const within = (ticks) => ticks.filter((tick) => tick >= low && tick <= high && !(isWhole && tick % 1));
        const of = (digits) => within(Array.from({length: Math.ceil(decades) + 2}, (_, i) => 10 ** (Math.floor(Math.log10(low)) + i))
            .flatMap((power) => digits.map((digit) => Number((digit * power).toPrecision(6)))));
        const found = of(decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5]);
        return found.length >= 3 ? found : linearTicks([low, high], isWhole);
    };

    /* What the y axis shows: {domain, place (0 at the bottom, 1 at the top), ticks}. */
    const upwards = ({y, unit, points, launches}) => {
        const values = [...points.flatMap(({value, low, high}) => [value, low, high]), ...launches.map(({value}) => value)]
            .filter((value) => value !== null && value !== undefined);
        const [least, most] = [Math.min(...values), Math.max(...values)];
        const isWhole = unit === "count";
        if (y === "log") {
            const room = Math.max(Math.log(most / least) * PAD, Math.log(1.02));
            const domain = [least * Math.exp(-room), most * Math.exp(room)];
            return {domain, ticks: logTicks(domain, isWhole), place: (value) => Math.log(value / domain[0]) / Math.log(domain[1] / domain[0])};
        }
        const domain = [Math.min(0, least), most > 0 ? most * (1 + PAD) : 1];
        return {domain, ticks: linearTicks(domain, isWhole), place: (value) => (value - domain[0]) / (domain[1] - domain[0])};
    };

    /* And the x axis: where a release stands, from 0 to 1, and which are named. */
    const across = ({x, tags, dates}, width) => {
        if (x !== "date") {
            const place = (position) => (position + 0.5) / tags.length;
            const every = Math.max(1, Math.ceil(LEAST_GAP.x * tags.length / width));
            return {place, ticks: tags.map((tag, i) => [place(i), tag]).filter((_, i) => (tags.length - 1 - i) % every === 0)};
        }
        const days = dates.map((date) => Date.parse(date));
        const [first, last] = [Math.min(...days), Math.max(...days)];
        const at = (day) => (first === last ? 0.5 : 0.03 + 0.94 * (day - first) / (last - first));
        const [from, to] = [first, last].map((day) => new Date(day).getUTCFullYear());
        const every = Math.max(1, Math.ceil(3 * LEAST_GAP.x * (to - from + 1) / width));
        const years = Array.from({length: to - from + 1}, (_, i) => from + i).filter((year) => (to - year) % every === 0);
        const named = years.map((year) => [at(Date.UTC(year, 0, 1)), String(year)]).filter(([place]) => Number(place) >= 0);
        return {place: (position) => at(days[position]),
                ticks: named.length > 1 ? named : [[at(first), dates[0]], ...first === last ? [] : [[at(last), dates.at(-1)]]]};
    };

    // --- the drawing

    const grouped = (rows) => {
        const found = new Map();
        rows.forEach((row) => found.set(row.variant, [...found.get(row.variant) || [], row]));
        return [...found.values()];
    };
    /* Neighbours that have a number, without which a line is broken. */
    const unbroken = (line) => line.reduce((runs, point) => {
        if (point.value === null) {
            runs.push([]);
        } else {
            runs.at(-1).push(point);
        }
        return runs;
    }, [[]]).filter((run) => run.length);

    const path = (pairs) => pairs.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
    const label = (x, y, text, more = {}) => svg("text", {x: x.toFixed(1), y: y.toFixed(1), ...more}, text);

    /** `1–3, 7` of 1, 2, 3 and 7. @param {number[]} numbers */
    const ranges = (numbers) => [...numbers].sort((a, b) => a - b).reduce((runs, number) => {
        const run = runs.at(-1);
        if (run && number === run[1] + 1) {
            run[1] = number;
        } else {
            runs.push([number, number]);
        }
        return runs;
    }, []).flatMap(([first, last]) => (last - first > 1 ? [`${first}–${last}`] : first === last ? [first] : [first, last])).join(", ");
    /* The numbers of events above their rules, those together that would touch: {place, numbers}, from left to right. */
    const labelled = (steps, placeOf) => {
        const wide = ({numbers}) => LETTER * ranges(numbers).length;
        const found = steps.filter(({numbers}) => numbers.length)
            .map(({position, numbers}) => ({place: placeOf(position), numbers})).sort((a, b) => a.place - b.place);
        const joined = [];
        for (let next of found) {
            while (joined.length && next.place - joined.at(-1).place < (wide(next) + wide(joined.at(-1))) / 2 + LETTER) {
                const before = joined.pop();
                const [one, other] = [before.numbers.length, next.numbers.length];
                next = {place: (before.place * one + next.place * other) / (one + other), numbers: [...before.numbers, ...next.numbers]};
            }
            joined.push(next);
        }
        return joined.map(({place, numbers}) => ({place, text: ranges(numbers)}));
    };

    const axes = (spec, {left, right, top, bottom, x, y}, up, over) => {
        const places = up.ticks.map((tick) => [y(tick), tickWords[spec.unit](tick)]);
        const apart = places.filter(([place], i) => i === 0 || Math.abs(place - places[i - 1][0]) >= LEAST_GAP.y);
        return [
            ...apart.flatMap(([place, text]) => [
                svg("line", {class: "grid", x1: left, x2: right, y1: place, y2: place}),
                label(left - 6, place + 4, text, {"text-anchor": "end"}),
            ]),
            svg("line", {class: "axis", x1: left, x2: right, y1: bottom, y2: bottom}),
            ...over.ticks.map(([place, text]) => (spec.x === "date" ? label(x(place), bottom + 18, text, {"text-anchor": "middle"})
                : label(x(place), bottom + 14, text, {"text-anchor": "end", transform: `rotate(-45 ${x(place)} ${bottom + 14})`}))),
            ...spec.steps.map(({position}) => {
                const place = x(over.place(position));
                return svg("line", {class: "step", x1: place, x2: place, y1: top, y2: bottom});
            }),
            ...labelled(spec.steps, (position) => x(over.place(position)))
                .map(({place, text}) => label(place, top - 6, text, {"text-anchor": "middle", class: "event"})),
        ];
    };

    /* What is drawn of a chart in which a reader looks at some releases alone: `node.window` is the first and the last. */
    const inWindow = ({spec, window: seen}) => {
        if (!seen) {
            return spec;
        }
        const [first, last] = seen;
        const within = (all) => all.filter(({position}) => position >= first && position <= last)
            .map((one) => ({...one, position: one.position - first}));
        const chosen = spec.chosen >= first && spec.chosen <= last && spec.chosen !== null ? spec.chosen - first : null;
        return {...spec, tags: spec.tags.slice(first, last + 1), dates: spec.dates.slice(first, last + 1), points: within(spec.points),
                launches: within(spec.launches), steps: within(spec.steps), chosen};
    };

    const build = (node) => {
        const spec = inWindow(node);
        const width = Math.max(200, node.clientWidth);
        const [left, right, top, bottom] = [EDGE.left, width - EDGE.right, EDGE.top, HEIGHT - EDGE.bottom];
        const [up, over] = [upwards(spec), across(spec, right - left)];
        const x = (place) => left + place * (right - left);
        const y = (value) => bottom - up.place(value) * (bottom - top);
        const at = (point) => [x(over.place(point.position)), y(point.value)];
        const lines = grouped(spec.points).flatMap(unbroken);
        const band = (line) => path([...line.map((point) => [at(point)[0], y(point.high)]),
                                     ...[...line].reverse().map((point) => [at(point)[0], y(point.low)])]);
        const isMarked = (line, position) => spec.points.length <= MOST_MARKS || line.length === 1 || position === spec.chosen;
        const size = spec.tags.length > 60 ? 0.35 : 0.6;
        const picture = svg("svg", {width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true"},
            ...spec.chosen === null ? [] : [svg("rect", {
                class: "chosen", x: x(over.place(spec.chosen)) - 9, width: 18, y: top, height: bottom - top})],
            ...axes(spec, {left, right, top, bottom, x, y}, up, over),
            ...lines.filter((line) => line.some(({low, high}) => low !== high)).map((line) =>
                svg("path", {class: `band ${colourOf(line[0].slot)}`, d: `${band(line)}Z`})),
            ...lines.map((line) => svg("path", {class: `line ${colourOf(line[0].slot)}`, d: path(line.map(at))})),
            ...spec.launches.map((launch) => {
                const [cx, cy] = at(launch);
                return svg("circle", {class: `launch ${colourOf(launch.slot)}`, cx: cx.toFixed(1), cy: cy.toFixed(1), r: 2});
            }),
            ...lines.flatMap((line) => line.filter(({position}) => isMarked(line, position))).map((point) => {
                const [px, py] = at(point);
                return svg("path", {class: `mark ${colourOf(point.slot)}`, d: shapeOf(point.slot),
                                    transform: `translate(${px.toFixed(1)} ${py.toFixed(1)}) scale(${size})`});
            }));
        node.placed = lines.flat().map((point) => ({point, at: at(point)}));
        node.across = spec.tags.map((_, position) => x(over.place(position)));
        node.replaceChildren(picture, el("div", {class: "tip", hidden: true}));
        node.dataset.drawn = "true";
    };

    // --- pointing at it

    const nearest = (node, event) => {
        const box = node.querySelector("svg").getBoundingClientRect();
        const [px, py] = [event.clientX - box.left, event.clientY - box.top];
        const far = ({at: [x, y]}) => Math.hypot(px - x, py - y);
        return node.placed.reduce((best, each) => (far(each) < far(best) ? each : best), node.placed[0]);
    };
    const point = (node, event) => {
        const found = node.placed && nearest(node, event);
        if (!found) {
            return;
        }
        const [x, y] = found.at;
        const tip = node.querySelector(".tip");
        tip.replaceChildren(...Object.entries(node.spec.told(found.point)).filter(([, text]) => text).map(([name, text]) =>
            el("div", {}, el("span", {}, `${name}: `), String(text))));
        tip.hidden = false;
        const isRight = x > node.clientWidth / 2;
        tip.style.left = `${isRight ? Math.max(0, x - 12 - tip.offsetWidth) : Math.min(x + 12, Math.max(0, node.clientWidth - tip.offsetWidth))}px`;
        tip.style.top = `${Math.max(0, Math.min(y, HEIGHT - tip.offsetHeight))}px`;
        const ring = node.querySelector(".ring") || node.querySelector("svg").appendChild(svg("circle", {class: "ring", r: 9}));
        ring.setAttribute("cx", x);
        ring.setAttribute("cy", y);
    };
    const leave = (node) => {
        node.querySelector(".tip").hidden = true;
        node.querySelectorAll(".ring").forEach((ring) => ring.remove());
    };

    // --- looking closer: a range that is dragged over, or the keys + - 0 and arrows

    const LEAST_SEEN = 3;
    const look = (node, first, last) => {
        const end = node.spec.tags.length - 1;
        const from = Math.max(0, Math.min(first, end - LEAST_SEEN + 1));
        const to = Math.min(end, Math.max(last, from + LEAST_SEEN - 1));
        node.window = from === 0 && to === end ? null : [from, to];
        build(node);
    };
    const byKey = (node, event) => {
        const [first, last] = node.window || [0, node.spec.tags.length - 1];
        const by = Math.max(1, Math.round((last - first) / 4));
        const end = node.spec.tags.length - 1;
        const shift = {ArrowLeft: -Math.min(by, first), ArrowRight: Math.min(by, end - last)}[event.key];
        const to = {"+": [first + by, last - by], "=": [first + by, last - by], "-": [first - by, last + by], "0": [0, end]}[event.key]
            || (shift !== undefined && [first + shift, last + shift]);
        if (to && node.placed && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            look(node, ...to);
        }
    };
    const placeIn = (node, event) => event.clientX - node.getBoundingClientRect().left;
    const dragged = (node, event) => {
        const [one, other] = [node.from, placeIn(node, event)].sort((a, b) => a - b);
        const within = (node.across || []).flatMap((at, position) => (at >= one && at <= other ? [position] : []));
        if (node.from !== null && other - one > DRAGGED && within.length) {
            const start = node.window ? node.window[0] : 0;
            look(node, start + within[0], start + within.at(-1));
        }
        node.from = null;
    };

    // --- charts of a page: drawn when they come into view, and anew in another width

    const sized = new ResizeObserver((entries) => entries.forEach(({target}) => {
        if (target.placed && target.clientWidth !== target.drawnWidth) {
            draw(target);
        }
    }));
    const draw = (node) => {
        node.drawnWidth = node.clientWidth;
        build(node);
        sized.observe(node);
    };
    const inView = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({target}) => {
        inView.unobserve(target);
        draw(target);
    }), {rootMargin: "300px"});
    window.addEventListener("beforeprint", () => document.querySelectorAll(".chart").forEach(draw));

    /* Fills `node` with the chart of `spec`: `x` (order or date), `y` (log or linear), `unit` (seconds, bytes, ratio,
       relative, count), `tags` and `dates` of the releases, `points` {position, variant, slot, value, low, high} in the order
       of a line, `launches` {position, slot, value}, `steps` {position, numbers of what happened there}, `chosen` (a position or null), and `told`,
       what is said of a point: {what it is: its words}. `words` are read out in its place. */
    TH.chart = (node, spec, words) => {
        node.classList.add("chart");
        node.setAttribute("role", "group");
        node.setAttribute("tabindex", "0");
        node.setAttribute("aria-label", words);
        node.setAttribute("aria-keyshortcuts", "+ - 0 ArrowLeft ArrowRight");
        node.from = null;
        node.addEventListener("keydown", (event) => byKey(node, event));
        node.addEventListener("pointerdown", (event) => { node.from = placeIn(node, event); });
        node.addEventListener("pointerup", (event) => dragged(node, event));
        node.addEventListener("dblclick", () => look(node, 0, node.spec.tags.length - 1));
        node.spec = {launches: [], steps: [], chosen: null, ...spec};
        node.addEventListener("pointermove", (event) => point(node, event));
        node.addEventListener("pointerdown", (event) => point(node, event));
        node.addEventListener("pointerleave", () => leave(node));
        inView.observe(node);
    };
})();
