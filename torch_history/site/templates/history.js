"use strict";

/* How did a benchmark move over the releases? Its chart, a line per variant, and the same numbers as a table. */
(() => {
    const TH = window.torchHistory;
    const {el} = TH;

    const MOST_DOTS = 2000;
    const UNITS = {seconds: "Seconds a call", bytes: "Bytes", ratio: "Ratio"};
    const EXACT = ["bytes", ""];

    // --- numbers

    const {median} = TH.common;

    const quantiles = new Map();
    const quantile = (share, freedom) => {
        if (!quantiles.has(freedom)) {
            quantiles.set(freedom, window.special.quantile(share, freedom));
        }
        return quantiles.get(freedom);
    };

    /* intervals.interval in JavaScript. */
    const interval = (numbers) => {
        const {CONFIDENCE, ENOUGH} = TH.contents.constants.intervals;
        const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
        const launches = numbers.length;
        if (launches < ENOUGH || low <= 0 || low === high) {
            return {low, high, isRange: true};
        }
        const logs = numbers.map(Math.log);
        const middle = logs.reduce((sum, log) => sum + log, 0) / launches;
        const variance = logs.reduce((sum, log) => sum + (log - middle) ** 2, 0) / (launches - 1);
        const half = quantile((1 + CONFIDENCE) / 2, launches - 1) * Math.sqrt(variance / launches);
        return {low: Math.exp(middle - half), high: Math.exp(middle + half), isRange: false};
    };

    // --- one scale: a machine is faster in one session than in another, and a line over releases must not show that

    const grouped = (pairs) => pairs.reduce(
        (groups, [key, value]) => groups.set(key, [...(groups.get(key) || []), value]), new Map());

    /* Conjugate gradients: the x with `apply(x)` = `wanted`, for a symmetric operator that is nowhere negative. */
    const solve = (apply, wanted) => {
        const dot = (a, b) => {
            let sum = 0;
            for (let i = 0; i < a.length; i += 1) {
                sum += a[i] * b[i];
            }
            return sum;
        };
        const add = (to, times, what) => {
            for (let i = 0; i < to.length; i += 1) {
                to[i] += times * what[i];
            }
        };
        const x = new Float64Array(wanted.length);
        const rest = Float64Array.from(wanted);
        let towards = Float64Array.from(wanted);
        let size = dot(rest, rest);
        const enough = 1e-12 * size;
        for (let i = 0; size > enough && i < 2 * wanted.length; i += 1) {
            const image = apply(towards);
            const step = size / dot(towards, image);
            add(x, step, towards);
            add(rest, -step, image);
            const next = dot(rest, rest);
            const then = Float64Array.from(rest);
            add(then, next / size, towards);
            towards = then;
            size = next;
        }
        return x;
    };

    /* Session -> {factor, newest}: how many times as long a series takes in it as in the `newest` session that a chain
       of shared releases ties it to. A logarithm is the level of its release plus that of its session: least squares of
       the medians of every release in every session, of which those that tie two count; the levels of releases are
       eliminated. */
    const sessionsOf = (lane, series) => {
        const pattern = lane.patterns[series.pattern];
        const names = [...new Set(pattern.map(([, block]) => lane.rounds[block][0]))].sort();
        const place = new Map(names.map((name, i) => [name, i]));
        const launches = pattern.map(([release, block], i) =>
            [release, [place.get(lane.rounds[block][0]), Math.log(series.numbers[i])]]);
        const ties = [...grouped(launches).values()].reverse()
            .map((pairs) => [...grouped(pairs)].map(([session, logs]) => [session, median(logs)]))
            .filter((of) => of.length > 1);
        const newest = names.map((_, i) => i);
        const isUneven = (of) => of.some(([session]) => newest[session] !== newest[of[0][0]]);
        while (ties.some(isUneven)) {
            for (const of of ties) {
                const most = Math.max(...of.map(([session]) => newest[session]));
                of.forEach(([session]) => { newest[session] = most; });
            }
        }
        const fromMean = (valueOf) => {
            const sums = new Float64Array(names.length);
            for (const of of ties) {
                let mean = 0;
                for (const pair of of) {
                    mean += valueOf(pair) / of.length;
                }
                for (const pair of of) {
                    sums[pair[0]] += valueOf(pair) - mean;
                }
            }
            return sums;
        };
        const levels = solve((x) => fromMean(([session]) => x[session]), fromMean(([, log]) => log));
        return new Map(names.map((name, i) =>
            [name, {factor: Math.exp(levels[i] - levels[newest[i]]), newest: names[newest[i]]}]));
    };

    const SCALED = "seconds";
    const known = {raw: new WeakMap(), scaled: new WeakMap()};

    /* By position of the release: {numbers, disturbed, newest, median, low, high, isRange}, or {reason, failed}, or null
       where it was not measured. Times are on the scale of the session `newest`, or `isRaw`, as they were measured. */
    const cellsOf = (lane, series, isRaw) => {
        const isScaled = !isRaw && series.unit === SCALED;
        const remembered = isScaled ? known.scaled : known.raw;
        if (!remembered.has(series)) {
            const cells = new Array(lane.releases.length).fill(null);
            const disturbed = new Set(series.disturbed);
            const sessions = isScaled ? sessionsOf(lane, series) : null;
            lane.patterns[series.pattern].forEach(([release, block], i) => {
                const {factor, newest} = isScaled ? sessions.get(lane.rounds[block][0]) : {factor: 1};
                cells[release] = cells[release] || {numbers: [], disturbed: 0, newest};
                cells[release].numbers.push(series.numbers[i] / factor);
                cells[release].disturbed += Number(disturbed.has(i));
            });
            cells.filter(Boolean).forEach((cell) => {
                Object.assign(cell, {median: median(cell.numbers)}, interval(cell.numbers));
            });
            for (const [release, reason, failed] of series.missing) {
                cells[release] = {reason: lane.reasons[reason], failed: failed === 1};
            }
            remembered.set(series, cells);
        }
        return remembered.get(series);
    };

    /* The variants of a benchmark in a size: {series, index, variant, slot, cells}; a slot is a colour and a shape, `isRaw`
       that times are as they were measured. */
    const members = (lane, benchmark, size, slots = new Map(), isRaw = false) => lane.series
        .map((series, index) => ({series, index, variant: series.variant}))
        .filter(({series}) => series.benchmark === benchmark && series.size === size)
        .map((member) => {
            if (!slots.has(member.variant)) {
                slots.set(member.variant, slots.size);
            }
            return {...member, slot: slots.get(member.variant), cells: cellsOf(lane, member.series, isRaw)};
        });

    const limitOf = (lane, benchmark, size) =>
        (lane.limits || []).find((limit) => limit.benchmark === benchmark && limit.size === size);

    /* What gives the divisor of a member's number on a release, or null where nothing is divided: the least median of all
       variants there, the limit there, or the member's own number on the release `chosen`, or on its first. */
    const divisorsOf = (lane, all, relative, chosen) => {
        if (relative === "limit") {
            const {series} = all[0];
            const {numbers} = limitOf(lane, series.benchmark, series.size);
            return (_, position) => numbers[position];
        }
        if (relative === "start") {
            const at = lane.releases.findIndex(({tag}) => tag === chosen);
            const first = ({cells}) => at >= 0 ? cells[at] : cells.find((cell) => cell && cell.numbers);
            return (member) => (first(member) || {}).median || null;
        }
        const least = lane.releases.map((_, i) => {
            const numbers = all.map(({cells}) => cells[i]).filter((cell) => cell && cell.numbers);
            return numbers.length ? Math.min(...numbers.map((cell) => cell.median)) : null;
        });
        return relative === "best" ? (_, position) => least[position] : null;
    };

    const times = (value) => {
        const small = value < 0.1 ? value.toPrecision(2) : value.toFixed(value < 10 ? 2 : 1);
        return `${value < 100 ? small : Math.round(value).toLocaleString("en")}×`;
    };
    /* A number for a reader: as a multiple of `divisor` unless that is null, bytes as `1.94 GB` unless `isExact`. */
    const words = (value, unit, divisor, isExact = false) => {
        if (divisor !== null) {
            return times(value / divisor);
        }
        return unit === "bytes" && !isExact ? TH.bytes(value) : TH.human(value, unit);
    };

    // --- a chart

    const rowsOf = (lane, shown, divisors, isLogarithmic) => {
        const points = [];
        const launches = [];
        let undrawn = 0;
        for (const member of shown) {
            const {series, variant, slot, cells} = member;
            const line = [];
            cells.forEach((cell, position) => {
                if (!cell) {
                    return;
                }
                const {tag, date, estimated} = lane.releases[position];
                const place = {position, date, slot};
                const divisor = divisors ? divisors(member, position) : 1;
                if (!cell.numbers || !divisor || (isLogarithmic && cell.median <= 0)) {
                    undrawn += Number(Boolean(cell.numbers));
                    line.push({...place, release: tag, variant, value: null, low: null, high: null});
                    return;
                }
                line.push({
                    ...place, release: tag, variant, cell, divisor, unit: series.unit,
                    value: cell.median / divisor,
                    low: (isLogarithmic && cell.low <= 0 ? cell.median : cell.low) / divisor,
                    high: cell.high / divisor,
                    day: date + (estimated ? " (estimated)" : ""),
                });
                if (cell.low !== cell.high) {
                    cell.numbers.filter((number) => number > 0 || !isLogarithmic)
                        .forEach((number) => launches.push({...place, value: number / divisor}));
                }
            });
            points.push(...line);
        }
        return {points, launches, undrawn};
    };

    /* What is said of a point: what it is -> its words. */
    const told = (isRelative) => ({cell, divisor, unit, release, day, variant}) => {
        const said = (number) => words(number, unit, isRelative ? divisor : null);
        const exactly = unit === "bytes" || isRelative ? ` (${TH.human(cell.median, unit)})` : "";
        const how = cell.isRange ? "range" : `${100 * TH.contents.constants.intervals.CONFIDENCE} % interval`;
        return {
            release, date: day, variant, median: said(cell.median) + exactly,
            [how]: cell.low === cell.high ? "" : `${said(cell.low)} to ${said(cell.high)}`,
            launches: cell.numbers.length + (cell.disturbed ? `, ${cell.disturbed} disturbed` : ""),
        };
    };

    const titleOf = (lane, {benchmark, size, unit}, relative, y, chosen) => {
        const divided = {
            "": "",
            "best": `, in multiples of the ${unit === "seconds" ? "fastest" : "least"} variant of each release`,
            "start": `, in multiples of that of ${chosen || "its first release"}`,
            "limit": relative === "limit" ? `, in multiples of ${limitOf(lane, benchmark, size).words}` : "",
        }[relative];
        return `${UNITS[unit] || "Count"}${divided}${y === "log" ? ", logarithmic" : ""}`;
    };

    const many = (number) => number.toLocaleString("en");

    /* What was done about sessions, in words. */
    const onOneScale = (points) => {
        const scaled = points.filter(({cell}) => cell && cell.newest !== undefined);
        const last = scaled.map(({cell}) => cell.newest).sort().at(-1);
        const apart = new Set(scaled.filter(({cell}) => cell.newest !== last).map(({release}) => release)).size;
        return [
            scaled.length > 0
                && "Times of all sessions are scaled to the newest one, by the releases that they share: "
                + "the two numbers of a comparison, from rounds that both releases share, may differ a little from these.",
            apart > 0 && `${apart === 1 ? "1 release is" : many(apart) + " releases are"} not connected to it and on a separate scale.`,
        ].filter(Boolean);
    };

    const caption = (unit, {points, launches, undrawn}, isRelative) => {
        const {CONFIDENCE, ENOUGH} = TH.contents.constants.intervals;
        const said = [];
        if (EXACT.includes(unit)) {
            said.push("These numbers do not vary from launch to launch.");
        } else if (!launches.length) {
            said.push("Each release has a single launch here, so the noise is unknown.");
        } else {
            said.push("Lines join the medians of a release's launches.",
                      `Bands are ${100 * CONFIDENCE} % intervals (Student's, of the mean logarithm) from ${ENOUGH}`,
                      "launches on, their range with fewer.",
                      launches.length <= MOST_DOTS ? "Dots are launches."
                          : `Its ${many(launches.length)} launches are too many to draw as dots.`);
        }
        said.push(...onOneScale(points));
        if (undrawn) {
            said.push(isRelative ? `${undrawn} numbers have nothing to be divided by.`
                : `${undrawn} numbers are 0, which a logarithmic scale cannot show: they are in the table.`);
        }
        return said.join(" ");
    };

    /* A figure: the chart of the variants `shown`, of which there are `all`, and what must be said of it. `steps` are
       {tag, numbers, sentence}. */
    const figure = (lane, all, shown, {x = "order", y, relative = "", steps = [], chosen = null, label}) => {
        const {series} = all[0];
        const divisors = divisorsOf(lane, all, relative, chosen);
        const rows = rowsOf(lane, shown, divisors, y === "log");
        if (rows.points.every(({value}) => value === null)) {
            const why = rows.undrawn ? caption(series.unit, rows, divisors !== null)
                : "No variant shown has a number on any release; the table says why.";
            return el("figure", {class: "history"}, el("p", {}, `There is nothing to draw. ${why}`));
        }
        const at = new Map(lane.releases.map(({tag}, position) => [tag, position]));
        const node = el("div", {});
        TH.chart(node, {
            x, y, unit: divisors ? "relative" : UNITS[series.unit] ? series.unit : "count",
            tags: lane.releases.map(({tag}) => tag), dates: lane.releases.map(({date}) => date), points: rows.points,
            launches: rows.launches.length <= MOST_DOTS ? rows.launches : [],
            steps: steps.filter(({tag}) => at.has(tag)).map((step) => ({...step, position: at.get(step.tag)})),
            chosen: at.get(chosen) ?? null, told: told(divisors !== null),
        }, label);
        return el("figure", {class: "history"},
                  el("p", {class: "axis quiet"}, titleOf(lane, series, relative, y, at.has(chosen) ? chosen : null)), node,
                  el("figcaption", {class: "quiet"}, caption(series.unit, rows, divisors !== null)));
    };

    const {swatch} = TH;
    const breakable = (name) => name.split(/(?<=_)/).flatMap((part, i) => i ? [el("wbr"), part] : [part]);
    const legend = (shown) => el("ul", {class: "legend"}, shown.map(({slot, variant}) =>
        el("li", {}, swatch(slot), variant)));

    // --- the table

    const startAtTheEnd = ({target}) => {
        toTheEnd.unobserve(target);
        const chosen = target.querySelector("th.chosen");
        target.scrollLeft = chosen ? chosen.offsetLeft - target.clientWidth / 2 : target.scrollWidth;
    };
    const toTheEnd = new IntersectionObserver((entries) =>
        entries.filter((entry) => entry.isIntersecting).forEach(startAtTheEnd));

    /* A region with a table that begins at its newest release, or at the one that is chosen. */
    const atTheEnd = (region, ...names) => {
        region.classList.add("from-the-end", ...names);
        toTheEnd.observe(region);
        return region;
    };

    /* Rows are the variants `shown`, columns the newest `most` releases of which any has something to say; `headOf`
       makes a column's head of a tag. Gives the nodes, and how many releases are hidden. */
    const table = (lane, all, shown, options) => {
        const {caption: name, relative = "", most = Infinity, chosen = null, isExact = false, headOf = (tag) => tag} = options;
        const divisors = divisorsOf(lane, all, relative, chosen);
        const every = lane.releases.map((_, i) => i).filter((i) => shown.some(({cells}) => cells[i]));
        const columns = every.slice(-most);
        const reasons = [];
        const noted = ({reason, failed}) => {
            const text = failed ? `failed: ${reason}` : reason;
            if (!reasons.includes(text)) {
                reasons.push(text);
            }
            return `${failed ? "failed" : "none"} (${reasons.indexOf(text) + 1})`;
        };
        const said = (member, i) => {
            const [cell, {unit}] = [member.cells[i], member.series];
            if (!cell || !cell.numbers) {
                return {text: cell ? noted(cell) : "–", class: "number quiet"};
            }
            const divisor = divisors && divisors(member, i);
            return divisors && !divisor ? {text: "nothing to divide by", class: "quiet"}
                : {text: words(cell.median, unit, divisor, isExact), class: "number"};
        };
        const marked = (i, cell) => lane.releases[i].tag === chosen ? {...cell, class: `${cell.class} chosen`} : cell;
        const heads = columns.map((i) => {
            const {tag} = lane.releases[i];
            return marked(i, {text: headOf(tag), class: "number", "aria-current": tag === chosen ? "true" : null});
        });
        const rows = shown.map((member) => [
            {text: [swatch(member.slot), breakable(member.variant)]},
            ...columns.map((i) => marked(i, said(member, i))),
        ]);
        const hasGaps = rows.some((row) => row.some(({text}) => text === "–"));
        return {
            hidden: every.length - columns.length,
            nodes: [
                atTheEnd(TH.table({caption: name, head: ["Variant", ...heads], rows}), "named"),
                hasGaps && el("p", {class: "quiet"}, "– was not measured."),
                reasons.length > 0 && [
                    el("p", {}, "Why there is no number:"),
                    el("ol", {class: "sentence-list"}, reasons.map((reason) => el("li", {}, TH.prose(reason)))),
                ],
            ],
        };
    };

    TH.history = {members, limitOf, figure, table, swatch, legend, atTheEnd};
})();
