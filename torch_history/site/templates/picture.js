"use strict";

/* Every case of a comparison as a point on a logarithmic axis of ratios, a row per question. Python computed each number. */
(() => {
    const TH = window.torchHistory;
    const {el, svg} = TH;

    const ROW = {height: 46, name: 22, point: 4, most: 54};  // most: pixels that a pile reaches up and down
    const EDGE = {top: 6, bottom: 30, right: 14, left: 14};
    const FACTORS = [1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 1024];
    const LEAST = Math.log(1.3);  // of either side of the axis: a picture of nothing is not full of noise
    const LABEL = 84;  // pixels that a tick's words take
    const SHAPES = {
        worse: "m-5,4l5,-9l5,9z", better: "m-5,-4l5,9l5,-9z", same: "m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z",
        changed: "m-4,0l4,-4l4,4l-4,4z", "cant-tell": "m-3.5,0a3.5,3.5 0 1 0 7,0a3.5,3.5 0 1 0 -7,0z",
    };
    const LESS = {times: ["faster", "slower"], memory: ["less memory", "more memory"]};

    /** `2.17 times slower (2.11 to 2.23)` of a change that has a ratio; `48 B more memory` where that is one of bytes or a count
        which a factor does not tell. */
    TH.ratioWords = ({ratio, low, high, old, new: now, verdict}, unit) => {
        const {times, bound} = TH.common;
        const isTime = unit === "seconds" || unit === "ratio";
        const words = isTime ? LESS.times : unit === "bytes" ? LESS.memory : ["fewer", "more"];
        const factor = times(Math.max(ratio, 1 / ratio));
        const isAmount = factor === "1.00" && !isTime && verdict !== "SAME" && old !== now;
        const said = isAmount ? TH.human(Math.abs(now - old), unit) : `${factor} times`;
        const way = words[Number(isAmount ? now > old : ratio > 1)];
        const ends = ratio > 1 ? [low, high] : [1 / high, 1 / low];
        const end = verdict === "SLOWER" || verdict === "FASTER" ? bound : times;
        const interval = low !== null && low !== high && verdict !== "SAME" ? ` (${ends.map(end).join(" to ")})` : "";
        return (factor === "1.00" && !isAmount ? "no change" : `${said} ${way}`) + interval;
    };

    /* Points of a row, none over another: from the middle, up and down in turn. */
    const spread = (points, x) => {
        const found = new Map();
        return [...points].sort((one, other) => one.ratio - other.ratio).map((point) => {
            const column = Math.round(x(point.ratio) / (2 * ROW.point));
            const count = found.get(column) || 0;
            found.set(column, count + 1);
            return {point, at: column * 2 * ROW.point, level: count % 2 ? (count + 1) / 2 : -count / 2};
        });
    };

    const scale = (points, width) => {
        const logs = points.map(({ratio}) => Math.log(ratio));
        const [low, high] = [Math.min(-LEAST, ...logs) * 1.08, Math.max(LEAST, ...logs) * 1.08];
        const x = (ratio) => {
            const share = (Math.min(Math.max(Math.log(ratio), low), high) - low) / (high - low);
            return EDGE.left + share * (width - EDGE.left - EDGE.right);
        };
        const candidates = [1, ...FACTORS.flatMap((factor) => [factor, 1 / factor])]
            .filter((ratio) => Math.log(ratio) >= low && Math.log(ratio) <= high);
        const isFree = (kept, ratio) => kept.every((other) => Math.abs(x(other) - x(ratio)) >= LABEL);
        const ends = candidates.filter((ratio) => ratio !== 1).reverse();
        const ticks = [1, ...ends].reduce((kept, ratio) => (isFree(kept, ratio) ? [...kept, ratio] : kept), []);
        return {x, ticks};
    };

    /** The picture: `points` are rows of a pair, `typical` question -> {ratio, low, high}, `what` times or memory, `address` of a
        point's history. */
    const draw = (node, {points, typical, what, href}, room) => {
        const width = Math.max(300, room);
        const {x, ticks} = scale(points, width);
        const questions = [...new Set(points.map(({series}) => series.question))];
        const rows = questions.map((question) => spread(points.filter(({series}) => series.question === question), x));
        const piles = rows.map((row) => Math.max(1, ...row.map(({level}) => Math.abs(level))));
        const steps = piles.map((most) => Math.min(2 * ROW.point + 1, ROW.most / most));
        const heights = piles.map((most, i) => Math.max(ROW.height, ROW.name + 2 * steps[i] * most + 22));
        const tops = heights.map((_, i) => EDGE.top + heights.slice(0, i).reduce((sum, each) => sum + each, 0));
        const bottom = EDGE.top + heights.reduce((sum, each) => sum + each, 0);
        const {margin} = TH.contents;
        const shade = what === "times" ? [svg("rect", {class: "margin", x: x(1 / (1 + margin)), width: x(1 + margin) - x(1 / (1 + margin)), y: EDGE.top, height: bottom - EDGE.top})] : [];
        const axis = ticks.flatMap((ratio) => [
            svg("line", {class: ratio === 1 ? "axis" : "grid", x1: x(ratio), x2: x(ratio), y1: EDGE.top, y2: bottom}),
            svg("text", {x: Math.min(Math.max(x(ratio), 34), width - 34), y: bottom + 18, "text-anchor": "middle"},
                ratio === 1 ? "1" : `${TH.common.times(Math.max(ratio, 1 / ratio)).replace(/\.?0+$/u, "")}× ${LESS[what][ratio > 1 ? 1 : 0].split(" ")[0]}`),
        ]);
        const drawn = rows.flatMap((row, i) => {
            const middle = tops[i] + ROW.name + (heights[i] - ROW.name - 14) / 2;
            const below = tops[i] + heights[i] - 8;
            const mean = typical[questions[i]];
            return [
                svg("line", {class: "grid", x1: 0, x2: width, y1: tops[i], y2: tops[i]}),
                svg("text", {class: "row-name", x: EDGE.left, y: tops[i] + 15}, TH.questionWords(questions[i])),
                svg("path", {class: "width", d: row.filter(({point}) => point.kind === "can't tell" && point.low !== null)
                    .map(({point, level}) => `M${x(point.low)},${middle + level * steps[i]}H${x(point.high)}`).join("")}),
                ...row.map(({point, at, level}) => {
                    const name = TH.classOf(point.verdict);
                    const words = `${TH.inCode(point.series).replaceAll("`", "")}: ${TH.shown(point.verdict)}, ${TH.ratioWords(point, point.series.unit)}`;
                    const link = svg("a", {href: href(point), class: `point ${name}`, "aria-label": `${TH.questionWords(questions[i])}: ${words}`, tabindex: "-1"},
                                     svg("path", {d: `M${at},${(middle + level * steps[i]).toFixed(1)}${SHAPES[name] || SHAPES.changed}`}));
                    link.told = () => [TH.questionWords(questions[i]), TH.inCode(point.series), TH.mark(point.verdict), TH.ratioWords(point, point.series.unit),
                                 `${TH.human(point.old, point.series.unit)} → ${TH.human(point.new, point.series.unit)}`];
                    return link;
                }),
                ...mean ? [svg("path", {class: "mean", d: `M${x(mean.low)},${below + 4}V${below - 4}M${x(mean.high)},${below - 4}V${below + 4}M${x(mean.low)},${below}H${x(mean.high)}`})] : [],
            ];
        });
        const picture = svg("svg", {width, height: bottom + EDGE.bottom, viewBox: `0 0 ${width} ${bottom + EDGE.bottom}`, role: "group",
                                    "aria-label": `${points.length} cases by ratio; arrow keys move from case to case`}, ...shade, ...axis, ...drawn);
        const tip = el("div", {class: "tip", hidden: true});
        node.replaceChildren(picture, tip);
        const links = [...picture.querySelectorAll(".point")];
        if (links.length) {
            links[0].setAttribute("tabindex", "0");
        }
        const tell = ({target}) => {
            const link = target.closest(".point");
            if (!link) {
                return;
            }
            const [question, code, mark, ratio, numbers] = link.told();
            tip.replaceChildren(el("div", {}, el("strong", {}, TH.prose(code))), el("div", {}, question), el("div", {}, mark, " ", ratio), el("div", {class: "quiet"}, numbers));
            tip.hidden = false;
            const [box, own] = [node.getBoundingClientRect(), link.getBoundingClientRect()];
            const left = own.left - box.left;
            tip.style.left = `${Math.max(0, left > box.width / 2 ? left - tip.offsetWidth - 6 : left + 16)}px`;
            tip.style.top = `${Math.max(0, own.top - box.top - tip.offsetHeight / 2)}px`;
        };
        const hide = () => { tip.hidden = true; };
        picture.addEventListener("pointerover", tell);
        picture.addEventListener("focusin", tell);
        picture.addEventListener("pointerleave", hide);
        picture.addEventListener("focusout", hide);
        picture.addEventListener("keydown", (event) => {
            const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
            const at = links.indexOf(event.target.closest(".point"));
            const next = links[at + (by || 0)];
            if (by && next) {
                event.preventDefault();
                links[at].setAttribute("tabindex", "-1");
                next.setAttribute("tabindex", "0");
                next.focus();
            } else if (event.key === "Escape") {
                hide();
            }
        });
    };

    /** The picture, drawn at once for the `room` there is in pixels, and again when that changes. */
    TH.casesPicture = (spec, room) => {
        const node = el("div", {class: "cases"});
        const fit = (width) => {
            if (width !== node.drawnWidth) {
                node.drawnWidth = width;
                draw(node, spec, width);
            }
        };
        fit(room);
        new ResizeObserver(() => node.isConnected && fit(node.clientWidth)).observe(node);
        return node;
    };

    /** What shapes and colours say, with how many there are of each. */
    TH.casesKey = (points, typical, what) => {
        const counts = TH.common.counted(points.map(({verdict}) => verdict));
        const verdicts = ["SLOWER", "HUNGRIER", "SAME", "CAN'T TELL", "FASTER", "LEANER"].filter((verdict) => counts.has(verdict));
        const sample = (name) => svg("svg", {viewBox: "-7 -7 14 14", class: `swatch point ${name}`, "aria-hidden": "true"}, svg("path", {d: SHAPES[name]}));
        return el("ul", {class: "legend"}, verdicts.map((verdict) => el("li", {}, sample(TH.classOf(verdict)), `${counts.get(verdict)} ${TH.shown(verdict)}`)),
                  Object.keys(typical).length > 0 && el("li", {}, svg("svg", {viewBox: "-9 -7 18 14", class: "swatch wide", "aria-hidden": "true"},
                      svg("path", {class: "mean", d: "M-7,6V-6M7,-6V6M-7,0H7"})), "typical of a question, with its interval"),
                  what === "times" && counts.has("SAME") && el("li", {}, el("span", {class: "margin-key", "aria-hidden": "true"}), `within ${100 * TH.contents.margin} %`));
    };
})();
