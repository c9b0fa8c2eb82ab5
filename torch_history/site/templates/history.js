"use strict";

/* How did a benchmark move over the releases? Its chart, a line per variant, and the same numbers as a table. */
(() => {
    const TH = window.torchHistory;
    const {el} = TH;

    const MOST_DOTS = 2000;
    const UNITS = {seconds: "Seconds", bytes: "Bytes", ratio: "Ratio"};

    // --- numbers

    const {median} = TH.common;

    const known = {raw: new WeakMap(), cleared: new WeakMap()};

    /* By position of the release: {numbers, disturbed, median, low, high}, or {reason, failed}, or null where it was not
       measured. What a session does to a whole question is taken off, or they are `isRaw`, as they were measured. */
    const cellsOf = (lane, series, isRaw) => {
        const isCleared = !isRaw && TH.varies(series);
        const remembered = isCleared ? known.cleared : known.raw;
        if (!remembered.has(series)) {
            const cells = new Array(lane.releases.length).fill(null);
            const disturbed = new Set(series.disturbed);
            lane.patterns[series.pattern].forEach(([release, block], i) => {
                const shift = isCleared ? ((lane.shifts[series.question] || {})[lane.rounds[block][0]] || 0) : 0;
                cells[release] = cells[release] || {numbers: [], disturbed: 0};
                cells[release].numbers.push(series.numbers[i] * Math.exp(-shift));
                cells[release].disturbed += Number(disturbed.has(i));
            });
            cells.filter(Boolean).forEach((cell) => Object.assign(cell,
                {median: median(cell.numbers), low: Math.min(...cell.numbers), high: Math.max(...cell.numbers)}));
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
        const undrawn = {zero: 0, undivided: 0};
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
                    undrawn[divisor ? "zero" : "undivided"] += Number(Boolean(cell.numbers));
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
        return {
            release, date: day, variant, median: said(cell.median) + exactly,
            range: cell.low === cell.high ? "" : `${said(cell.low)} to ${said(cell.high)}`,
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

    const without = ({zero, undivided}) => [
        undivided && `${undivided} ${undivided === 1 ? "number has" : "numbers have"} nothing to be divided by.`,
        zero && `${zero} ${zero === 1 ? "number is" : "numbers are"} 0, which a logarithmic scale cannot show: the table has ${zero === 1 ? "it" : "them"}.`,
    ].filter(Boolean).join(" ");
    const caption = (shown, {launches, undrawn}, isCleared) => {
        const said = [];
        const cells = shown.flatMap((member) => member.cells).filter((cell) => cell && cell.numbers);
        if (cells.every(({numbers}) => numbers.length === 1)) {
            said.push(`Each release has a single launch here${TH.varies(shown[0].series) ? ", so the noise is unknown" : ""}.`);
        } else if (cells.every(({low, high}) => low === high)) {
            said.push("All launches of a release agree.");
        } else {
            said.push("Lines join the medians of a release's launches.",
                      "Bands are their range.",
                      launches.length <= MOST_DOTS ? "Dots are launches."
                          : `Its ${many(launches.length)} launches are too many to draw as dots.`);
        }
        said.push("Drag over releases to look closer, double-click to see all; or the keys + - 0 and arrows.");
        if (isCleared) {
            said.push("Differences that a whole session shares are removed.");
        }
        return [...said, without(undrawn)].join(" ").trimEnd();
    };

    /* A figure: the chart of the variants `shown`, of which there are `all`, and what must be said of it. `steps` are
       {tag, numbers, sentence}. */
    const figure = (lane, all, shown, {x = "order", y, relative = "", steps = [], chosen = null, label, isRaw = false}) => {
        const {series} = all[0];
        const isCleared = !isRaw && TH.varies(series);
        const divisors = divisorsOf(lane, all, relative, chosen);
        const rows = rowsOf(lane, shown, divisors, y === "log");
        if (rows.points.every(({value}) => value === null)) {
            const why = without(rows.undrawn) || "No variant shown has a number on any release; the table says why.";
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
                  el("figcaption", {class: "quiet"}, caption(shown, rows, isCleared)));
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

    TH.history = {cellsOf, members, limitOf, times, figure, table, swatch, legend};
})();
