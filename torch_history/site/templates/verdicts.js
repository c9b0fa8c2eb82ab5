"use strict";

/* What does an upgrade from A to B cost? What pairs.py found of any two releases of a lane, as it is shown.

   Every verdict, ratio, interval, cause and finding was made in Python; here they are read, and put into words. */
(() => {
    const TH = window.torchHistory;
    const constants = () => TH.contents.constants;

    const {sum, median, counted, bound, fixed} = TH.common;
    const fold = TH.common.times;
    const thousands = (text) => text.replace(/\B(?=(\d{3})+$)/g, ",");
    const said = (value, yes = "True", no = "False") => (value === true ? yes : value === false ? no : String(value));
    // eslint-disable-next-line no-control-regex -- Python's str.split splits at these as well
    const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
    const inOneLine = (text) => text.split(SPACE).filter(Boolean).join(" ");

    // --- series

    const words = (name) => name.replaceAll("_", " ");
    const name = ({question, metric, parameters}) =>
        `${words(question)} ${words(metric)}, ${parameters.join(" ")}`.trimEnd();
    /* What contract/metrics.py says of the metric of a series; of one that it does not know, that it is a bare count. */
    const measure = ({metric}) => constants().metrics[metric]
        || {kind: "counts", varies: false, margin: 0, more_and_less: ["MORE", "FEWER"]};
    const varies = (series) => measure(series).varies;
    const marginOf = (series) => measure(series).margin;
    const buildOf = (series) => {
        const {BUILDS, ANY_BUILD} = constants().series;
        return varies(series) && measure(series).measured === "steady" ? BUILDS[series.question] ?? ANY_BUILD : null;
    };
    const isWithinBuilds = (series, {verdict, ratio}) => ["SLOWER", "FASTER"].includes(verdict)
        && buildOf(series) !== null && ratio !== null && Math.max(ratio, 1 / ratio) <= buildOf(series);
    const placeOf = (lane, tag) => lane.releases.findIndex((release) => release.tag === tag);

    // --- what pairs.py wrote

    const opened = new WeakMap();
    const floats = (numbers) => numbers.map((each) => (each === null ? NaN : Math.fround(each)));
    /* The times of pairs, with `rows`: series -> its row there. */
    const openedOf = (pairs) => {
        if (!opened.has(pairs)) {
            const {timed} = pairs;
            const rows = new Map(timed.series.map((series, row) => [series, row]));
            opened.set(pairs, {...timed, levels: floats(timed.levels), shown: floats(timed.shown), rows});
        }
        return opened.get(pairs);
    };
    /* The places of two releases among the pairs, and whether they were asked for the other way round. */
    const pairOf = (lane, from, to) => {
        const {pairs} = lane;
        if (!pairs.releases.includes(from) || !pairs.releases.includes(to) || from === to) {
            return null;
        }
        const count = pairs.releases.length;
        const [old, now] = [from, to].map((tag) => pairs.releases.indexOf(tag));
        const [first, last] = [Math.min(old, now), Math.max(old, now)];
        return {pairs, old, now, isBack: old > now, count: count * (count - 1) / 2,
                number: first * (2 * count - first - 1) / 2 + last - first - 1};
    };

    /* Takes numbers from the start of a list, `next()` by `next()`, until `more()` is false. */
    const reader = (list) => {
        let at = 0;
        return {next: () => list[(at += 1) - 1], more: () => at < list.length};
    };
    const bounded = (logarithm) => Math.exp(TH.common.clip(logarithm, Math.log(constants().verdicts.BOUND)));
    const penalty = (looks) => (looks === 1 ? 1 : looks / constants().verdicts.LATE_SHARE);
    const OTHER_WAY = {SLOWER: "FASTER", FASTER: "SLOWER"};

    const levelOf = ({pairs}, row, at) => openedOf(pairs).levels[row * pairs.releases.length + at];
    const shownOf = ({pairs}, row, at) => {
        const shown = openedOf(pairs).shown[row * pairs.releases.length + at];
        return Number.isNaN(shown) ? null : shown;
    };

    /* Of a time that rounds tie on both releases; null of any other. */
    const timed = (series, pair, row) => {
        const {LEAST_STEP, STEP, ERROR_RATE} = constants().verdicts;
        const {codes, halves, looks} = openedOf(pair.pairs);
        const at = row * pair.count + pair.number;
        const found = pair.pairs.timed.verdicts[codes[at]];
        if (!found) {
            return null;
        }
        const verdict = pair.isBack ? OTHER_WAY[found] || found : found;
        const shift = levelOf(pair, row, pair.now) - levelOf(pair, row, pair.old);
        const half = halves[at] === 255 ? Infinity : LEAST_STEP * Math.exp(STEP * halves[at]);
        const rate = pair.pairs.rates[series.question][pair.number];
        return {verdict, ratio: bounded(shift), low: bounded(shift - half), high: bounded(shift + half), reason: "",
                confidence: 1 - (verdict === "SAME" ? 2 * ERROR_RATE : rate / penalty(looks[at]))};
    };

    /* Of what does not vary, or no rounds tie, or has no number; null where one release was not measured. */
    const untied = (series, pair, place, [old, now]) => {
        const {of_series, rows, verdicts, reasons} = pair.pairs.states;
        const [states, ...outcomes] = rows[of_series[place]];
        const [before, after] = [states[pair.old], states[pair.now]];
        if (before < 0 || after < 0) {
            return null;
        }
        const at = 2 * (before * (Math.max(...states) + 1) + after);
        const [verdict, reason] = [verdicts[outcomes[0][at]], reasons[outcomes[0][at + 1]]];
        const isExact = !varies(series) && !marginOf(series);
        const none = isExact && now === old ? 1 : null;
        const ratio = old === null || now === null ? null : old ? now / old : none;
        const end = isExact && verdict !== "CAN'T TELL" ? ratio : null;
        return {verdict, reason, ratio, low: end, high: end, confidence: null, disturbed: 0};
    };

    /* Release -> the positions of its launches, of each pattern. */
    const indexed = new WeakMap();
    const launchesOf = (lane, series, release) => {
        if (!indexed.has(lane)) {
            indexed.set(lane, lane.patterns.map((pattern) => {
                const found = new Map();
                pattern.forEach(([at], i) => found.set(at, [...(found.get(at) || []), i]));
                return found;
            }));
        }
        return indexed.get(lane)[series.pattern].get(release) || [];
    };
    /* What is shown of an exact number: the last launch's; of what scatters within a margin, the median. */
    const numberOf = (series, positions) => {
        const numbers = positions.map((i) => series.numbers[i]);
        return !numbers.length ? null : marginOf(series) ? median(numbers) : numbers.at(-1);
    };

    /* Findings as ranked, {rows, because, explained}, and what `explain` did not see again; causes are noted with changes. */
    const findingsOf = (pair, changes) => {
        if (pair.isBack) {
            return [];
        }
        const clauses = ["", ...pair.pairs.clauses];
        const {next, more} = reader(pair.pairs.told[pair.number]);
        const row = () => {
            const change = changes.get(next());
            change.why = clauses[next()];
            return change;
        };
        const found = [];
        for (let count = next(); count; count = next()) {
            const [because, explained] = [clauses[next()], next()];
            found.push({because, explained, rows: Array.from({length: count}, row)});
        }
        while (more()) {
            row().unconfirmed = true;
        }
        return found;
    };

    /* All changes of a lane from the release `from` to the release `to`, the worst first, with their `findings`. */
    const compare = (lane, from, to) => {
        const pair = pairOf(lane, from, to);
        if (!pair) {
            return Object.assign([], {findings: []});
        }
        const releases = [from, to].map((tag) => placeOf(lane, tag));
        const isFleet = (lane.rounds || []).some(([, , node]) => node);
        const changes = new Map();
        lane.series.forEach((series, place) => {
            const row = openedOf(pair.pairs).rows.get(place);
            const launches = releases.map((release) => launchesOf(lane, series, release));
            const [old, now] = row === undefined ? launches.map((positions) => numberOf(series, positions))
                : [pair.old, pair.now].map((release) => shownOf(pair, row, release));
            const found = (row === undefined ? null : timed(series, pair, row)) || untied(series, pair, place, [old, now]);
            if (found) {
                changes.set(place, {
                    series: place, kind: constants().series.KINDS[found.verdict], old, new: now, why: "", unconfirmed: false,
                    launches: launches.map(({length}) => length),
                    disturbed: series.disturbed.filter((i) => launches.some((positions) => positions.includes(i))).length, ...found,
                    apart: isFleet && isApart(lane, series, launches),
                });
            }
        });
        const findings = findingsOf(pair, changes);
        const keys = new Map(Array.from(changes.values(), (one) => [one, place(one)]));
        const sorted = [...changes.values()].sort((a, b) => inOrder(keys.get(a), keys.get(b)));
        sorted.forEach((one) => { one.sentence = sentence(lane.series[one.series], one); });
        return Object.assign(sorted, {findings});
    };

    /* Whether nodes of a fleet measured both releases, and none of them both. */
    const isApart = (lane, series, launches) => {
        const [olds, news] = launches.map((positions) =>
            new Set(positions.map((i) => lane.rounds[lane.patterns[series.pattern][i][1]][2] || "")));
        return varies(series) && olds.size > 0 && news.size > 0 && !olds.has("") && !news.has("")
            && ![...olds].some((node) => news.has(node));
    };

    const inOrder = (one, other) => {
        const i = one.findIndex((value, at) => value !== other[at]);
        return i < 0 ? 0 : one[i] < other[i] ? -1 : 1;
    };
    const place = ({kind, old, new: now, ratio}) => {
        const far = ratio > 0 ? Math.round(Math.abs(Math.log(ratio)) * 1e9) : Infinity;
        return [constants().series.RANK[kind], Number(old !== null && now !== null), -far];
    };

    // --- in words

    const humanTime = (seconds) => {
        const units = constants().verdicts.TIME_UNITS;
        const [unit, least] = units.findLast(([, each]) => seconds >= each) || units[0];
        return seconds === 0 ? "0s" : humanFloat(seconds / least) + unit;
    };
    const humanFloat = (value) => {
        const magnitude = Math.floor(Math.log10(value)) + 1;
        if (magnitude <= -5 || magnitude >= 9) {
            return value.toExponential(3).replace(/e(.)(\d)$/, (_, sign, digit) => `e${sign}0${digit}`);
        }
        return fixed(value, Math.max(3 - magnitude, 0));
    };
    const human = (value, unit) => {
        if (value === null || value === undefined) {
            return "";
        }
        if (unit === "seconds") {
            return humanTime(value);
        }
        return unit === "ratio" ? fixed(value, 2) : thousands(fixed(value, 0)) + (unit === "bytes" ? " B" : "");
    };

    const factsOf = (lane, tag) => (lane.releases[placeOf(lane, tag)] || {facts: {}}).facts;
    const isSaidFirst = ({kind}) => constants().compare.SAID_FIRST.includes(kind);

    /** @returns {[string, unknown[]][]} */
    const movedFacts = (lane, from, to) => {
        const {ENVIRONMENT, ON_A_GPU} = constants().why;
        const [old, now] = [factsOf(lane, from), factsOf(lane, to)];
        const isOnGpu = (lane.machine.device || "cpu") !== "cpu";
        const names = Object.keys(ENVIRONMENT).filter((fact) => isOnGpu || !ON_A_GPU.includes(fact));
        const isKnown = (value) => value !== null && value !== undefined;
        return names.filter((fact) => isKnown(old[fact]) && isKnown(now[fact])
                            && JSON.stringify(old[fact]) !== JSON.stringify(now[fact]))
            .map((fact) => [fact, [old[fact], now[fact]]]);
    };
    const factWords = ([fact, [old, now]]) => {
        if (fact === "fuses_on_cpu") {
            return now ? "the wheel fuses on a CPU now" : "the wheel no longer fuses on a CPU";
        }
        return `${constants().why.ENVIRONMENT[fact]} went from ${said(old)} to ${said(now)}`;
    };
    const listed = (clauses) => {
        const isShort = clauses[0].includes(" went from ");
        const all = clauses.map((clause, i) => (i && isShort ? clause.replace(" went from ", " from ") : clause));
        return all.length === 1 ? all[0] : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
    };
    const bare = (parameter) => parameter.replace(/^'+|'+$/gu, "");

    const shown = (verdict) => constants().series.SHOWN[verdict] || verdict;
    const sentence = (series, one) => {
        const {verdict, old, new: now, ratio, reason, why} = one;
        const numbers = `from ${human(old, series.unit)} to ${human(now, series.unit)}`;
        let text = `${name(series)}: ${shown(verdict)}`;
        if (verdict === "FIXED") {
            text += ` at ${human(now, series.unit)}; before, ${reason}`;
        } else if (old === null || now === null) {
            text += `: ${reason}`;
        } else if (verdict === "SAME") {
            text += varies(series) ? ` (${intervalWords(one)} times)` : ` at ${human(now, series.unit)}`;
        } else if (verdict === "CAN'T TELL") {
            text += `, ${numbers}${untold(one)}`;
        } else if (varies(series)) {
            text += ` ${by(ratio)} (${intervalWords(one)})`;
            if (isWithinBuilds(series, one)) {
                text += `, no more than two builds of one source differ by (up to ${fold(buildOf(series))} times)`;
            }
        } else {
            text += series.unit === "bytes" && ratio > 0 ? ` ${ofBytes(one)}, ${numbers}` : `, ${numbers}`;
        }
        text += one.apart ? "; no node measured both" : "";
        const end = why ? `, ${why}` : "";
        return `${inOneLine(text).replace(/\.+$/, "")}${end}.`;
    };

    const by = (ratio) => `${fold(Math.max(ratio, 1 / ratio))} times`;
    const ofBytes = ({ratio, old, new: now}) =>
        (by(ratio) === "1.00 times" ? `by ${human(Math.abs(now - old), "bytes")}` : by(ratio));
    const intervalWords = ({verdict, ratio, low, high}) => {
        if (ratio === null || low === null || high === null) {
            return "";
        }
        const told = ["SLOWER", "FASTER"].includes(verdict) ? bound : fold;
        return (verdict === "FASTER" ? [1 / high, 1 / low] : [low, high]).map(told).join(" to ");
    };
    const untold = (one) => {
        if (one.reason) {
            return `: ${one.reason}`;
        }
        if (one.high / one.low > constants().compare.UNSEEN ** 2) {
            return `: ${sum(one.launches)} launches would not show even a tenfold change`;
        }
        return ` (${intervalWords(one)} times)`;
    };

    const lookedAt = (changes) => changes.filter((one) => one.confidence !== null).length;
    const oneSided = (lane, from, to) => {
        const pair = pairOf(lane, from, to);
        const {of_series, rows} = pair.pairs.states;
        return of_series.filter((row) => (rows[row][0][pair.old] < 0) !== (rows[row][0][pair.now] < 0)).length;
    };
    const tallied = (changes) => counted(changes.map((one) => one.verdict));

    const ofProcesses = (lane, times) => {
        const usual = [constants().verdicts.MARGIN, constants().compare.CALL_MARGIN];
        const others = times.map((one) => lane.series[one.series]).filter((series) => !usual.includes(marginOf(series)));
        const pairs = others.map((series) => [series.metric.replaceAll("_", " "), fixed(100 * marginOf(series), 0)]);
        const told = new Map(pairs.sort(([one], [other]) => (one < other ? -1 : 1)));
        return [...told].map(([metric, margin]) => `, ${margin} % for ${metric}`).join("");
    };

    /* What is said where no series changed, as `unchanged` in analysis/answer.py says it. */
    const unchanged = (lane, changes) => {
        const once = changes.filter(isSaidFirst).length;
        if (once) {
            return `no change is certain: ${once.toLocaleString("en")} series changed, and not when a cause was looked for`;
        }
        const times = changes.filter(({series, verdict}) =>
            varies(lane.series[series]) && !["BROKE", "FIXED", "NEVER RAN"].includes(verdict));
        const undecided = times.filter(({verdict}) => verdict === "CAN'T TELL").length;
        const many = (number) => number.toLocaleString("en");
        const howMany = `${many(undecided)} of ${many(times.length)} ${times.length === 1 ? "time" : "times"} ${undecided === 1 ? "is" : "are"} inconclusive`;
        if (!undecided) {
            return "no change was detected";
        }
        return undecided >= constants().answer.UNDECIDED * times.length ? `undecided: ${howMany}` : `no change was detected, but ${howMany}`;
    };

    const summary = (lane, from, to, changes) => {
        const {MARGIN, FALSE_RATE} = constants().verdicts;
        const {KINDS} = constants().series;
        const {CALL_MARGIN} = constants().compare;
        const tally = tallied(changes);
        const told = Object.keys(KINDS).filter((verdict) => tally.has(verdict));
        const counts = told.map((verdict) => `${tally.get(verdict)} ${shown(verdict)}`).join(", ");
        const lines = [`${from} -> ${to} on ${lane.machine.machine}, ${lane.environment}: ${counts}.`];
        const times = changes.filter((one) => varies(lane.series[one.series]) && one.old !== null && one.new !== null);
        const single = times.filter((one) => one.reason === constants().verdicts.SINGLE).length;
        const disturbed = sum(times.map((one) => one.disturbed));
        const facts = movedFacts(lane, from, to);
        if (lookedAt(changes)) {
            const [margin, ofCalls, rate] = [MARGIN, CALL_MARGIN, FALSE_RATE].map((share) => fixed(100 * share, 0));
            lines.push(`${lookedAt(changes) === 1 ? "1 time was" : lookedAt(changes) + " times were"} compared, with a margin of ${margin} % `
                + `(${ofCalls} % for single calls${ofProcesses(lane, times)}). `
                + `At most ${rate} % of the changes reported in them are expected to be false.`);
        }
        if (disturbed) {
            lines.push(`${disturbed} of their launches ran while the machine was disturbed, `
                + "which affects all releases alike.");
        }
        const pair = pairOf(lane, from, to);
        if (pair && pair.pairs.alone[pair.number]) {
            lines.push(pair.pairs.alone[pair.number]);
        }
        if (single) {
            const [, python] = lane.environment.split("release-py");
            lines.push(`${single} times have a single launch of one release, which is no evidence. `
                + `Measure more: \`torch-history run ${python ? "--lane " + python + " " : ""}--rounds 5 ${from} ${to}\`.`);
        }
        if (oneSided(lane, from, to)) {
            lines.push(`${oneSided(lane, from, to)} series were measured on only one of the two releases.`);
        }
        if (facts.length) {
            lines.push(`The environments differ: ${listed(facts.map(factWords))}.`);
        }
        return lines;
    };

    const SPECIAL = new RegExp([/[\\`*{}[\]<>|~&$]/, /(?<![\p{L}\p{N}_])_|_(?![\p{L}\p{N}_])/u, /[@#](?=[\p{L}\p{N}_])/u,
                                /:(?=\/\/)/, /(?<=[wW]{3})\./, /(?<=mailto):|(?<=xmpp):/].map((one) => one.source).join("|"), "giu");
    const escape = (text) => inOneLine(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu, "\ufffd").replace(SPECIAL, (found) =>
        ("@#:.".includes(found) ? `${found}&#8288;` : `&#${found.codePointAt(0)};`));

    const json = (lane, from, to, changes) => {
        const {MARGIN, FALSE_RATE, ERROR_RATE, POWER} = constants().verdicts;
        return {
            schema: constants().compare.SCHEMA, machine: lane.machine.machine, environment: lane.environment, old: from,
            new: to, margin: MARGIN, false_rate: FALSE_RATE, error_rate: ERROR_RATE, power: POWER,
            looked_at: lookedAt(changes), one_sided: oneSided(lane, from, to),
            moved: Object.fromEntries(movedFacts(lane, from, to)), tally: Object.fromEntries(tallied(changes)),
            failed: 0,
            changes: changes.map((one) => {
                const series = lane.series[one.series];
                return {
                    question: series.question, metric: series.metric, parameters: series.parameters,
                    benchmark: series.benchmark, unit: series.unit || "count", verdict: one.verdict, kind: one.kind,
                    old: one.old, new: one.new, ratio: one.ratio, low: one.low, high: one.high,
                    margin: varies(series) ? marginOf(series) : null, confidence: one.confidence,
                    launches: one.launches, disturbed: one.disturbed,
                    reason: one.reason, why: one.why, build: varies(series) ? buildOf(series) : null,
                    within_builds: isWithinBuilds(series, one), replicated: "not testable", on_other_machines: "not testable", sentence: one.sentence,
                    failed: false, apart: one.apart, difference: null,
                    least_growth: null,
                };
            }),
        };
    };

    // --- what only pages need

    /* The keys of `json` as RFC 4180 has it; text that a spreadsheet would compute begins with an apostrophe. */
    const csv = (lane, from, to, changes) => {
        const cell = (value) => {
            const text = typeof value === "string" ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value ?? "");
            return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
        };
        const rows = json(lane, from, to, changes).changes.map(({parameters, launches, failed, difference, least_growth, ...rest}) =>
            ({...rest, parameters: parameters.join(" "), launches_old: launches[0], launches_new: launches[1]}));
        const lines = rows.length ? [Object.keys(rows[0]), ...rows.map(Object.values)] : [];
        return lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("");
    };

    /* Of each series that another one may stand for: that one which surely takes least on a release, or null. */
    const instead = (lane, tag) => {
        const {pairs} = lane;
        const {LEAST_STEP, STEP} = constants().verdicts;
        const at = pairs.releases.indexOf(tag);
        const found = new Map();
        const {next, more} = reader(pairs.instead[at] || []);
        while (more()) {
            const [own, other] = [next(), next()];
            found.set(lane.series[own], other ? {other: lane.series[other - 1], half: next()} : null);
        }
        return new Map(Array.from(found, ([own, best]) => {
            if (!best) {
                return [own, null];
            }
            const [one, two] = [own, best.other].map((series) => valueOf(lane, series, at, tag));
            const half = best.half ? LEAST_STEP * Math.exp(STEP * (best.half - 1)) : 0;
            const ratio = varies(own) ? Math.exp(two - one) : two / one;
            return [own, {own, other: best.other, ratio, low: ratio * Math.exp(-half), high: ratio * Math.exp(half)}];
        }));
    };
    const valueOf = (lane, series, at, tag) => {
        const row = openedOf(lane.pairs).rows.get(lane.series.indexOf(series));
        return row === undefined ? numberOf(series, launchesOf(lane, series, placeOf(lane, tag))) : levelOf(lane, row, at);
    };

    /* What a session does to all times of a question, as a logarithm; 0 where that is not known. */
    const shift = (lane, {question}, session) => (lane.pairs.shifts[question] || {})[session] || 0;

    const adjacent = (lane, tag) => {
        const before = lane.releases[placeOf(lane, tag) - 1];
        return before ? before.tag : null;
    };

    /* The facts that differ, in words: name -> [old, new]. */
    const moved = (lane, from, to) => Object.fromEntries(movedFacts(lane, from, to).map(([fact, values]) =>
        [constants().why.ENVIRONMENT[fact] || "TorchScript fuses on a CPU",
         values.map((value) => said(value, "yes", "no"))]));

    TH.verdicts = {compare, instead, shift, adjacent, moved, summary, unchanged, bare, escape, csv, json, human, name, varies, shown, inOneLine};
})();
