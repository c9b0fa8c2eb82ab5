"use strict";

/* What does an upgrade from A to B cost? The verdict on any two releases of a lane, made where it is read.

   This is verdicts.py, why.py and compare.py in the browser, in their order and with their names; why so stands there.
   Their numbers and tables of words come with the data. tests/test_verdicts_js.py holds both to the same answers. */
(() => {
    const TH = window.torchHistory;
    const constants = () => TH.contents.constants;

    // --- what Python brings along

    const {sum, mean, median, clip, counted, bound, fixed} = TH.common;
    const fold = TH.common.times;
    const thousands = (text) => text.replace(/\B(?=(\d{3})+$)/g, ",");
    const said = (value, yes = "True", no = "False") => (value === true ? yes : value === false ? no : String(value));
    // eslint-disable-next-line no-control-regex -- Python's str.split splits at these as well
    const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
    const inOneLine = (text) => text.split(SPACE).filter(Boolean).join(" ");

    // --- what SciPy brings along: the special functions are stdlib's

    const {cdf, digamma, trigamma} = window.special;

    /* Student's two-sided test: the chance of t or more. */
    const student = (t, freedom) => 2 * cdf(-t, freedom);

    /* Student's t that lies above this share. Series of a comparison share their degrees of freedom, so what was found is
       kept. */
    const kept = new Map();
    const quantile = (share, freedom) => {
        const key = `${share} ${freedom}`;
        if (!kept.has(key)) {
            if (kept.size > 10000) {
                kept.clear();
            }
            kept.set(key, window.special.quantile(share, freedom));
        }
        return kept.get(key);
    };

    /* Where trigamma is `value`, in logarithms between 0.001 and ten million, halved until it is found. */
    const whereTrigamma = (value) => {
        let [low, high] = [Math.log(1e-3), Math.log(1e7)];
        for (let turn = 0; turn < 60; turn += 1) {
            const middle = (low + high) / 2;
            [low, high] = trigamma(Math.exp(middle)) > value ? [middle, high] : [low, middle];
        }
        return Math.exp((low + high) / 2);
    };

    /* What solves with a symmetric matrix, by Cholesky's factor; row i is given from column firsts[i] to the diagonal.
       Rounds tie releases near each other, so in the order of the axis rows are short and stay so. */
    const solver = (rows, firsts) => {
        rows.forEach((row, i) => {
            for (let j = firsts[i]; j <= i; j += 1) {
                const from = Math.max(firsts[i], firsts[j]);
                for (let k = from; k < j; k += 1) {
                    row[j - firsts[i]] -= row[k - firsts[i]] * rows[j][k - firsts[j]];
                }
                const left = row[j - firsts[i]];
                row[j - firsts[i]] = j < i ? left / rows[j][j - firsts[j]] : Math.sqrt(left);
            }
        });
        return (right) => {
            const found = Float64Array.from(right);
            rows.forEach((row, i) => {
                for (let k = firsts[i]; k < i; k += 1) {
                    found[i] -= row[k - firsts[i]] * found[k];
                }
                found[i] /= row[i - firsts[i]];
            });
            for (let i = rows.length - 1; i >= 0; i -= 1) {
                found[i] /= rows[i][i - firsts[i]];
                for (let k = firsts[i]; k < i; k += 1) {
                    found[k] -= rows[i][k - firsts[i]] * found[i];
                }
            }
            return found;
        };
    };

    // --- verdicts.py: series and changes

    const words = (name) => name.replaceAll("_", " ");
    const name = ({question, metric, parameters}) =>
        `${words(question)} ${words(metric)}, ${parameters.join(" ")}`.trimEnd();
    /* What contract/metrics.py says of the metric of a series; of one that it does not know, that it is a bare count. */
    const measure = ({metric}) => constants().metrics[metric]
        || {kind: "counts", varies: false, margin: 0, more_and_less: ["MORE", "FEWER"]};
    const varies = (series) => measure(series).varies;
    const marginOf = (series) => measure(series).margin;
    const buildOf = (series) => {
        const {BUILDS, ANY_BUILD} = constants().verdicts;
        return varies(series) && measure(series).measured === "steady" ? BUILDS[series.question] ?? ANY_BUILD : null;
    };
    const isWithinBuilds = (series, {verdict, ratio}) => ["SLOWER", "FASTER"].includes(verdict)
        && buildOf(series) !== null && ratio !== null && Math.max(ratio, 1 / ratio) <= buildOf(series);

    const change = (series, verdict, found = {}) => ({
        series, verdict, kind: constants().verdicts.KINDS[verdict], old: null, new: null, ratio: null, low: null,
        high: null, spread: null, launches: [0, 0], reason: "", confidence: null, detectable: null, disturbed: 0,
        ...found,
    });

    // --- verdicts.py: what launches say of log(new / old)

    const bounded = (logarithm) => Math.exp(clip(logarithm, Math.log(constants().verdicts.BOUND)));
    const penalty = (looks) => (looks === 1 ? 1 : looks / constants().verdicts.LATE_SHARE);
    const chanceOf = ({shift, error, freedom, looks}) =>
        Math.min(1, student(Math.abs(shift) / error, freedom) * penalty(looks));
    const isBeyond = ({shift, margin}) => Math.abs(shift) > Math.log1p(margin);
    const isInside = (evidence) => {
        const [low, high] = interval(evidence, 1 - 2 * constants().verdicts.ERROR_RATE);
        return low >= 1 / (1 + evidence.margin) && high <= 1 + evidence.margin;
    };
    const interval = ({shift, error, freedom}, confidence) => {
        const half = quantile((1 + confidence) / 2, freedom) * error;
        return [bounded(shift - half), bounded(shift + half)];
    };
    const detectable = ({error, freedom, margin}, errorRate) => {
        const {POWER} = constants().verdicts;
        const [certain, often] = [1 - errorRate / 2, POWER].map((share) => quantile(share, freedom));
        return bounded(Math.max(Math.log1p(margin), certain * error) + often * error);
    };

    /* Of each pattern: release -> the positions of its launches; of each series: release -> why it has no number. */
    const indexed = new WeakMap();
    const indexOf = (lane) => {
        if (!indexed.has(lane)) {
            const launches = lane.patterns.map((pattern) => {
                const found = new Map();
                pattern.forEach(([release], i) => found.set(release, [...(found.get(release) || []), i]));
                return found;
            });
            const reasons = new Map(lane.series.map((series) => [series, new Map(series.missing.map(
                ([release, reason, failed]) => [release, {said: lane.reasons[reason], failed}]))]));
            const has = (series, release) => launches[series.pattern].has(release) || reasons.get(series).has(release);
            indexed.set(lane, {launches, reasons, has});
        }
        return indexed.get(lane);
    };
    const placeOf = (lane, tag) => lane.releases.findIndex((release) => release.tag === tag);

    /* The positions of what compares two releases, by a pattern of [release, block]. */
    const comparable = (pattern, launches, old, now) => {
        const theirs = [old, now].map((release) => launches.get(release) || []);
        const [olds, news] = theirs.map((positions) => new Set(positions.map((i) => pattern[i][1])));
        const both = new Set([...olds].filter((block) => news.has(block)));
        if (both.size) {
            const beside = both.size <= constants().verdicts.ROBUST_FROM;
            return pattern.flatMap(([release, block], i) =>
                (both.has(block) && (beside || release === old || release === now) ? [i] : []));
        }
        const rounds = new Map();
        pattern.forEach(([release, block]) => rounds.set(block, (rounds.get(block) || new Set()).add(release)));
        const tied = new Set([old]);
        const ahead = [old];
        while (ahead.length) {
            for (const i of launches.get(ahead.pop()) || []) {
                const more = [...(rounds.get(pattern[i][1]) || [])].filter((release) => !tied.has(release));
                more.forEach((release) => tied.add(release));
                ahead.push(...more);
                rounds.delete(pattern[i][1]);
            }
        }
        return tied.has(now) ? pattern.flatMap(([release], i) => (tied.has(release) ? [i] : [])) : [];
    };

    /* What `estimate` must know of a pattern but not of numbers, so once for all series that share it; null where
       nothing compares the two releases. Levels are relative to that of the old one. */
    const designOf = (pattern, launches, old, now) => {
        const used = comparable(pattern, launches, old, now);
        if (!used.length) {
            return null;
        }
        const places = (values) => new Map([...new Set(values)].sort((a, b) => a - b).map((value, i) => [value, i]));
        const others = places(used.map((i) => pattern[i][0]).filter((release) => release !== old));
        const blocks = places(used.map((i) => pattern[i][1]));
        const release = used.map((i) => (pattern[i][0] === old ? others.size : others.get(pattern[i][0])));
        const block = used.map((i) => blocks.get(pattern[i][1]));
        const sides = [old, now].map((side) => used.filter((i) => pattern[i][0] === side));
        const design = {used, sides, release, block, blocks: blocks.size, releases: others.size};
        if (others.size === 1 && used.length === 2 * blocks.size) {
            const of = sides.map((positions) => new Map(positions.map((i) => [pattern[i][1], i])));
            return {...design, pairs: [...of[0]].map(([key, i]) => [i, of[1].get(key)])};
        }
        const rounds = Array.from(blocks, () => []);
        block.forEach((round, i) => rounds[round].push(release[i]));
        const firsts = Array.from(others, (_, i) => i);
        for (const round of rounds) {
            const first = Math.min(...round);
            round.filter((i) => i < others.size).forEach((i) => { firsts[i] = Math.min(firsts[i], first); });
        }
        const rows = Array.from(others, (_, i) => new Float64Array(i - firsts[i] + 1));
        for (const round of rounds) {
            const counts = counted(round.filter((i) => i < others.size));
            for (const [i, n] of counts) {
                rows[i][i - firsts[i]] += n;
                for (const [j, m] of counts) {
                    if (j <= i) {
                        rows[i][j - firsts[i]] -= n * m / round.length;
                    }
                }
            }
        }
        const solve = solver(rows, firsts);
        const which = others.get(now);
        return {...design, which, solve, rounds: rounds.map((round) => round.length),
                factor: solve(firsts.map((_, i) => Number(i === which)))[which]};
    };

    const estimate = (numbers, design) => {
        const {used, release, block, rounds, releases, blocks, pairs, which, solve, factor} = design;
        if (pairs) {
            return paired(Float64Array.from(pairs, ([old, now]) => Math.log(numbers[now]) - Math.log(numbers[old])));
        }
        const logarithms = Float64Array.from(used, (i) => Math.log(numbers[i]));
        const apart = (values) => {
            const means = new Float64Array(blocks);
            values.forEach((value, i) => { means[block[i]] += value / rounds[block[i]]; });
            return values.map((value, i) => value - means[block[i]]);
        };
        const sums = new Float64Array(releases + 1);
        apart(logarithms).forEach((value, i) => { sums[release[i]] += value; });
        const levels = solve(sums.subarray(0, releases));
        const left = apart(logarithms.map((value, i) => (release[i] < releases ? value - levels[release[i]] : value)));
        const freedom = used.length - blocks - releases;
        const squares = left.reduce((total, value) => total + value * value, 0);
        return {shift: levels[which], factor, variance: squares / Math.max(freedom, 1), freedom};
    };

    const paired = (differences) => {
        const {ROBUST_FROM, LEAST_VARIANCE, PULLED_IN, TURNS} = constants().verdicts;
        const n = differences.length;
        const left = new Float64Array(n);
        const freedom = n - 1;
        let [shift, limit, usual] = [0, Infinity, 0];
        const pullIn = () => {
            let total = 0;
            for (let i = 0; i < n; i += 1) {
                total += clip(differences[i] - shift, limit);
            }
            shift += total / n;
        };
        pullIn();
        for (let turn = 0; turn < 2 * TURNS && freedom >= ROBUST_FROM; turn += 1) {
            if (turn < TURNS) {
                for (let i = 0; i < n; i += 1) {
                    left[i] = Math.abs(differences[i] - shift);
                }
                usual = Math.max(median(left), 2 * Math.sqrt(LEAST_VARIANCE));
            }
            limit = turn < TURNS ? usual : PULLED_IN * 1.4826 * usual;
            pullIn();
        }
        let [inside, squares] = [0, 0];
        for (const difference of differences) {
            inside += Number(Math.abs(difference - shift) <= limit);
            squares += clip(difference - shift, limit) ** 2;
        }
        inside /= n;
        const variance = squares / 2 / Math.max(freedom, 1) / inside ** 2;
        return {shift, factor: 2 / n, variance, freedom: freedom * inside};
    };

    /* `estimates` and what is found: series -> what is said of it. */
    const weigh = (estimates) => {
        const kinds = new Map();
        const add = (kind, one) => kinds.set(kind, [...(kinds.get(kind) || []), one]);
        estimates.forEach((one, {metric, question}) => {
            add(`${metric} ${question}`, one);
            add(metric, one);
        });
        const lent = new Map(Array.from(kinds, ([kind, ofKind]) => [kind, commonNoise(ofKind)]));
        return new Map(Array.from(estimates, ([series, one]) => {
            const own = lent.get(`${series.metric} ${series.question}`);
            const [common, weight] = own[1] ? own : lent.get(series.metric);
            const freedom = weight + one.freedom;
            const variance = (weight * common + one.freedom * one.variance) / freedom;
            const error = Math.sqrt(Math.max(variance, constants().verdicts.LEAST_VARIANCE) * one.factor);
            return [series, {shift: one.shift, error, freedom, margin: marginOf(series)}];
        }));
    };

    const commonNoise = (estimates) => {
        const {LENDERS, MOST_LENT, ROUNDING} = constants().verdicts;
        const known = estimates.filter((one) => one.variance > ROUNDING);
        if (known.length < LENDERS) {
            return [0, 0];
        }
        const logs = known.map((one) => Math.log(one.variance) - digamma(one.freedom / 2) + Math.log(one.freedom / 2));
        const middle = mean(logs);
        const seen = sum(logs.map((value) => (value - middle) ** 2)) / (logs.length - 1);
        const fourth = mean(logs.map((value) => (value - middle) ** 4));
        const unsure = Math.sqrt(Math.max(fourth - seen ** 2, 0) / logs.length) + seen / logs.length;
        const differing = Math.max(seen - mean(known.map((one) => trigamma(one.freedom / 2))), 1e-6) + unsure;
        const weight = whereTrigamma(differing);
        return [Math.exp(middle + digamma(weight) - Math.log(weight)), Math.min(2 * weight, MOST_LENT)];
    };

    const errorRateOfEach = (evidence) => {
        const {FALSE_RATE} = constants().verdicts;
        const chances = Float64Array.from(evidence, (one) => (isBeyond(one) ? chanceOf(one) : 1)).sort();
        const changed = chances.findLastIndex((chance, i) => chance * (chances.length / (i + 1)) <= FALSE_RATE) + 1;
        return chances.length ? FALSE_RATE * Math.max(1, changed) / chances.length : FALSE_RATE;
    };

    /* Once after the rounds that all series of a question have, and again after each beyond them. */
    const looksOf = (lane, all, designs) => {
        const ofPattern = new Map(Array.from(designs).filter(([, design]) => design).map(([at, {sides}]) => {
            const [before, after] = sides.map((side) => new Set(side.map((i) => lane.patterns[at][i][1])));
            return [at, [...before].filter((block) => after.has(block)).length];
        }));
        const rounds = new Map(all.map((series) => [series, ofPattern.get(series.pattern)]));
        const least = new Map();
        rounds.forEach((count, {question}) => least.set(question, Math.min(count, least.get(question) ?? count)));
        return new Map(Array.from(rounds, ([series, count]) => [series, 1 + count - least.get(series.question)]));
    };

    // --- verdicts.py: verdicts

    const timed = (at, series, {sides}, shift, evidence, errorRate) => {
        const [olds, news] = sides.map((positions) => positions.map((i) => series.numbers[i]));
        const spreads = [olds, news].filter((side) => side.length > 1).map(variation);
        const [old, now] = levels(olds, news, shift);
        const found = change(at, "CAN'T TELL", {
            old, new: now, ratio: Math.exp(shift), launches: [olds.length, news.length],
            spread: spreads.length ? Math.max(...spreads) : null,
            disturbed: series.disturbed.filter((i) => sides.flat().includes(i)).length,
        });
        if (!evidence) {
            return found;
        }
        const ofLook = errorRate / penalty(evidence.looks);
        let [verdict, confidence] = ["CAN'T TELL", 1 - ofLook];
        if (isBeyond(evidence) && chanceOf(evidence) <= errorRate) {
            verdict = shift > 0 ? "SLOWER" : "FASTER";
        } else if (isInside(evidence)) {
            [verdict, confidence] = ["SAME", 1 - 2 * constants().verdicts.ERROR_RATE];
        }
        const [low, high] = interval(evidence, confidence);
        return {...found, verdict, kind: constants().verdicts.KINDS[verdict], low, high, confidence,
                detectable: detectable(evidence, ofLook)};
    };

    /* Numbers that are `shift` apart in logarithms, around the geometric middle of the two medians. */
    const levels = (olds, news, shift) => {
        const middle = Math.sqrt(median(olds)) * Math.sqrt(median(news));
        return [middle * Math.exp(-shift / 2), middle * Math.exp(shift / 2)];
    };

    const variation = (values) => {
        const middle = mean(values);
        return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1)) / middle;
    };

    /* `before` and `after` are the numbers of the two releases, and why there are none. */
    const judge = (at, series, before, after) => {
        const [olds, news] = [before.numbers, after.numbers];
        if (!olds.length || !news.length) {
            return missing(at, before, after);
        }
        if (!varies(series)) {
            return marginOf(series) ? held(at, series, olds, news) : exact(at, series, olds, news);
        }
        const shift = mean(news.map(Math.log)) - mean(olds.map(Math.log));
        const [old, now] = levels(olds, news, shift);
        return change(at, "CAN'T TELL", {
            old, new: now, ratio: Math.exp(shift), launches: [olds.length, news.length],
            reason: "no round has a number for both, and no chain of rounds with common releases connects them",
        });
    };

    const exact = (at, series, olds, news) => {
        const [old, now] = [olds.at(-1), news.at(-1)];
        const ratio = old ? now / old : now === old ? 1 : null;
        const found = {old, new: now, ratio, launches: [olds.length, news.length]};
        const [some, others] = [olds, news].map((side) => [...new Set(side)].sort((a, b) => a - b));
        if (some.length > 1 || others.length > 1) {
            const reason = `the count differs between launches: [${some.join(", ")}] and [${others.join(", ")}]`;
            return change(at, "CAN'T TELL", {...found, reason});
        }
        if (measure(series).kind === "times" && Math.min(...found.launches) < 2) {
            return change(at, "CAN'T TELL", {...found, reason: "one launch each"});
        }
        const [more, fewer] = measure(series).more_and_less;
        const verdict = now === old ? "SAME" : now > old ? more : fewer;
        return change(at, verdict, {...found, low: ratio, high: ratio, spread: 0});
    };

    /* Bytes that differ a little from launch to launch, as Python's `_held` judges them. */
    const held = (at, series, olds, news) => {
        const [old, now] = [median(olds), median(news)];
        const limit = 1 + marginOf(series);
        const found = {old, new: now, ratio: old ? now / old : null, launches: [olds.length, news.length]};
        const [least, most] = [Math.min, Math.max].map((end) => [end(...olds), end(...news)]);
        if (Math.min(...found.launches) < 2) {
            return change(at, "CAN'T TELL", {...found, reason: "one launch each"});
        }
        if (least[1] > limit * most[0] || least[0] > limit * most[1]) {
            return change(at, measure(series).more_and_less[now > old ? 0 : 1], found);
        }
        if (Math.max(...most) <= limit * Math.min(...least)) {
            return change(at, "SAME", found);
        }
        const [before, after] = [olds, news].map((side) =>
            [...side].sort((a, b) => a - b).map((value) => thousands(value.toFixed(0))).join(", "));
        return change(at, "CAN'T TELL", {...found, reason: `the launches scatter too much: [${before}] and [${after}]`});
    };

    /* Why a release has no number. What was not measured, or the recorder could not count, is the suite's limit, and neither
       breaks a release nor mends one. */
    const whyNone = (lane, release, none) => {
        const tag = lane.releases[release].tag;
        const isUncounted = none && none.failed === 0 && lane.machine.device === "recorder";
        const unmeasured = none && none.failed === 2 ? `${tag} was ${none.said}` : "";
        return {reason: none && none.said, unmeasured,
                uncounted: unmeasured || (isUncounted ? `${tag} was not counted: ${none.said}` : "")};
    };

    const missing = (at, before, after) => {
        const [olds, news] = [before.numbers, after.numbers];
        const reason = olds.length ? after.uncounted : news.length ? before.uncounted
            : before.unmeasured || after.unmeasured;
        if (reason) {
            const [old, now] = [olds, news].map((side) => (side.length ? median(side) : null));
            return change(at, "CAN'T TELL", {old, new: now, launches: [olds.length, news.length], reason});
        }
        if (olds.length) {
            return change(at, "BROKE", {old: median(olds), launches: [olds.length, 0], reason: after.reason});
        }
        if (news.length) {
            return change(at, "FIXED", {new: median(news), launches: [0, news.length], reason: before.reason});
        }
        return change(at, "NEVER RAN", {reason: after.reason});
    };

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

    // --- why.py

    const causes = (lane, from, to, changes) => {
        const beside = new Map();
        const caseOf = ({series}) => JSON.stringify([lane.series[series].question, lane.series[series].parameters]);
        for (const one of changes) {
            const key = caseOf(one);
            beside.set(key, {...beside.get(key), [lane.series[one.series].metric]: one});
        }
        const found = new Map();
        for (const one of changes.filter(isChanged)) {
            const ofCase = beside.get(caseOf(one));
            const fusion = ofCase.fusion_groups;
            const ofFusion = fusion && fusion !== one && fused(fusion) ? `because ${fused(fusion)}` : "";
            const besideIt = varies(lane.series[one.series]) ? ofTime(lane, one, ofCase) : ofFusion;
            const cause = ofEvidence(lane, one, from, to, besideIt) || besideIt;
            if (cause) {
                found.set(one.series, cause);
            }
        }
        return found;
    };

    const factsOf = (lane, tag) => (lane.releases[placeOf(lane, tag)] || {facts: {}}).facts;
    const isSaidFirst = ({kind}) => constants().compare.SAID_FIRST.includes(kind);
    const isChanged = (one) => isSaidFirst(one) && one.old !== null && one.new !== null;

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

    const ofEvidence = (lane, one, from, to, besideIt) => {
        const isFound = ({verdict}) => constants().why.FOUND_ON.includes(verdict);
        const lookedAt = foundOf(lane, one, from, to);
        const certain = constants().why.FUSIONS.includes(besideIt) ? besideIt : "";
        return explainedOf(lane, one, from, to, (known) => isFound(known) && !known.seen_on)
            || (lookedAt ? `because ${lookedAt}` : certain)
            || leftOf(lane, one, from, (known) => isFound(known) && !known.seen_on)
            || explainedOf(lane, one, from, to, (known) => isFound(known) && known.seen_on)
            || explainedOf(lane, one, from, to, (known) => !isFound(known));
    };

    const explainedOf = (lane, one, from, to, isAsked) => {
        const {SHARE, TOLD} = constants().why;
        const [old, now] = [from, to].map((tag) => versionOf(factsOf(lane, tag).torch || ""));
        const isWithin = (known) => old.length && !isEarlier(versionOf(known.old.slice(1)), old)
            && !isEarlier(now, versionOf(known.new.slice(1)));
        const size = (known) => Math.abs(Math.log(known.ratio));
        const isWhole = (known) => isVersion(old, known.old) && isVersion(now, known.new);
        const isThere = (known) => isWhole(known) || SHARE * size(known) <= size(one);
        const fitting = evidenceOf(lane, one).filter((known) => isAsked(known) && isWithin(known) && one.ratio
            && (known.ratio > 1) === (one.ratio > 1) && size(known) >= SHARE * size(one) && isThere(known));
        if (!fitting.length) {
            return "";
        }
        const better = (most, known) => TOLD.indexOf(known.verdict) - TOLD.indexOf(most.verdict) || size(most) - size(known);
        const most = fitting.reduce((best, known) => (better(best, known) < 0 ? known : best));
        return isWhole(most) ? most.words : `${most.words} (from ${most.old} to ${most.new})`;
    };
    /* That a change takes back the one before it, as Python's `_left` tells it. */
    const leftOf = (lane, one, from, isAsked) => {
        const margin = Math.log1p(marginOf(lane.series[one.series]));
        const before = versionOf(factsOf(lane, from).torch || "");
        const was = evidenceOf(lane, one).find((known) => isAsked(known) && isVersion(before, known.new) && one.ratio
            && Math.abs(Math.log(known.ratio)) > 2 * margin && Math.abs(Math.log(known.ratio * one.ratio)) <= margin);
        return was ? `as before ${was.new}, which had changed it ${was.words}` : "";
    };
    const evidenceOf = (lane, one) => {
        const {benchmark, parameters} = lane.series[one.series];
        return (lane.evidence || []).filter((known) => known.benchmark === benchmark
            && JSON.stringify(known.parameters.map(bare)) === JSON.stringify(parameters));
    };
    const isVersion = (version, tag) => {
        const other = versionOf(tag.slice(1));
        return !isEarlier(version, other) && !isEarlier(other, version);
    };
    const bare = (parameter) => parameter.replace(/^'+|'+$/gu, "");

    const foundOf = (lane, one, from, to) => {
        const {question, metric, parameters: [variant = "", size = ""]} = lane.series[one.series];
        const [old, now] = [from, to].map((tag) => versionOf(factsOf(lane, tag).torch || ""));
        const since = new Map();
        constants().why.FOUND.filter(([release, ofQuestion, variants, metrics, verdict, , , part, first, last]) =>
            ofQuestion === question && variants.includes(variant) && verdict === one.verdict && size.includes(part)
            && metrics.includes(metric) && old.length && isEarlier(old, versionOf(release)) && !isEarlier(now, versionOf(release))
            && !isEarlier(old, versionOf(first)) && (!last || !isEarlier(versionOf(last), now)))
            .forEach(([release, , , , , found]) => since.set(found, [...(since.get(found) || []), release]));
        return since.size ? listed([...since].map(([found, releases]) => `${found} (since ${listed(releases)})`)) : "";
    };
    const versionOf = (text) => (text.match(/^\d+(\.\d+)*/u) || [""])[0].split(".").filter(Boolean).map(Number);
    const isEarlier = (version, other) => {
        const at = other.findIndex((number, i) => number !== version[i]);
        return at >= 0 && (version[at] === undefined || version[at] < other[at]);
    };

    const ofTime = (lane, time, beside) => {
        const {OWN} = constants().why;
        const own = Object.keys(OWN).filter((metric) => beside[metric] && isChanged(beside[metric])
                                            && weighs(beside[metric], time));
        const wents = (metrics) => listed(metrics.map((metric) => went(lane, metric, beside[metric])));
        const costly = own.filter((metric) => costs(metric, beside[metric]) === (time.verdict === "SLOWER"));
        if (costly.length) {
            const fusion = costly.filter((metric) => metric === "fusion_groups" && fused(beside[metric]));
            return fusion.length ? `because ${wents(fusion)}` : constants().why.BESIDE + wents(costly);
        }
        const although = own.length ? `although ${wents(own)}: ` : "";
        return `${although}unexplained`;
    };

    const costs = (metric, {old, new: now}) =>
        metric === "fusion_groups" && !Math.min(old, now) ? now <= old : now > old;
    const weighs = (number, time) => !number.ratio || !time.ratio
        || Math.abs(Math.log(number.ratio)) >= constants().why.SHARE * Math.abs(Math.log(time.ratio));
    const fused = ({verdict, old, new: now}) => {
        const lost = verdict === "FEWER" && now === 0 ? "it is no longer fused" : "";
        return verdict === "MORE" && old === 0 ? "it is fused now" : lost;
    };
    const went = (lane, metric, number) => {
        const {unit} = lane.series[number.series];
        return (metric === "fusion_groups" && fused(number))
            || `${constants().why.OWN[metric]} went from ${human(number.old, unit)} to ${human(number.new, unit)}`;
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

    // --- compare.py

    /* All changes of a lane from the release `from` to the release `to`, the worst first. */
    const compare = (lane, from, to) => {
        const [old, now] = [placeOf(lane, from), placeOf(lane, to)];
        if (old < 0 || now < 0 || old === now) {
            return [];
        }
        const {launches, reasons, has} = indexOf(lane);
        const found = lane.series.filter((series) => has(series, old) && has(series, now));
        const designs = new Map();
        const estimates = new Map();
        for (const series of found.filter(varies)) {
            const at = series.pattern;
            if (!designs.has(at)) {
                designs.set(at, designOf(lane.patterns[at], launches[at], old, now));
            }
            if (designs.get(at)) {
                estimates.set(series, estimate(series.numbers, designs.get(at)));
            }
        }
        const evidence = weigh(new Map([...estimates].filter(([, one]) => one.freedom)));
        const looks = looksOf(lane, [...evidence.keys()], designs);
        evidence.forEach((one, series) => Object.assign(one, {looks: looks.get(series)}));
        const errorRate = errorRateOfEach(evidence.values());
        const numbersOf = (series, release) => ({
            numbers: (launches[series.pattern].get(release) || []).map((i) => series.numbers[i]),
            ...whyNone(lane, release, reasons.get(series).get(release)),
        });
        const places = new Map(lane.series.map((series, i) => [series, i]));
        const changes = found.map((series) => {
            const [at, one] = [places.get(series), estimates.get(series)];
            return one ? timed(at, series, designs.get(series.pattern), one.shift, evidence.get(series), errorRate)
                : judge(at, series, numbersOf(series, old), numbersOf(series, now));
        });
        const keys = new Map(changes.map((one) => [one, place(one)]));
        changes.sort((a, b) => inOrder(keys.get(a), keys.get(b)));
        const why = causes(lane, from, to, changes);
        const isFleet = (lane.rounds || []).some(([, , node]) => node);
        for (const one of changes) {
            one.why = why.get(one.series) || "";
            one.apart = isFleet && isApart(lane, lane.series[one.series], [old, now]);
            one.sentence = sentence(lane.series[one.series], one);
            one.unconfirmed = isUnconfirmed(lane, one.series, from, to);
        }
        return changes;
    };

    /* Whether `explain` looked for a change between these releases and did not see it again. */
    const isUnconfirmed = (lane, series, from, to) => (lane.unconfirmed || []).some(([key, old, now]) =>
        old === from && now === to && JSON.stringify(key) === JSON.stringify([lane.series[series].benchmark, ...lane.series[series].parameters]));

    /* Whether nodes of a fleet measured both releases, and none of them both. */
    const isApart = (lane, series, releases) => {
        const {launches} = indexOf(lane);
        const [olds, news] = releases.map((release) => new Set((launches[series.pattern].get(release) || [])
            .map((i) => lane.rounds[lane.patterns[series.pattern][i][1]][2] || "")));
        return varies(series) && olds.size > 0 && news.size > 0 && !olds.has("") && !news.has("")
            && ![...olds].some((node) => news.has(node));
    };

    const inOrder = (one, other) => {
        const i = one.findIndex((value, at) => value !== other[at]);
        return i < 0 ? 0 : one[i] < other[i] ? -1 : 1;
    };
    const place = ({kind, old, new: now, ratio}) => {
        const far = ratio > 0 ? Math.round(Math.abs(Math.log(ratio)) * 1e9) : Infinity;
        return [constants().verdicts.RANK[kind], Number(old !== null && now !== null), -far];
    };

    const shown = (verdict) => constants().verdicts.SHOWN[verdict] || verdict;
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
        if (one.detectable === null) {
            return ": a single launch is no evidence of a time; measure at least two";
        }
        if (one.detectable > constants().compare.UNSEEN) {
            const [launches, spread] = [sum(one.launches), fixed(100 * (one.spread || 0), 0)];
            return `: ${launches} launches with a spread of ${spread} % would not show even a tenfold change`;
        }
        return ` (${intervalWords(one)} times): a change of ${by(one.detectable)} would have been detected`;
    };

    const lookedAt = (changes) => changes.filter((one) => one.confidence !== null).length;
    const oneSided = (lane, from, to) => {
        const [{has}, old, now] = [indexOf(lane), placeOf(lane, from), placeOf(lane, to)];
        return lane.series.filter((series) => has(series, old) !== has(series, now)).length;
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
        const {MARGIN, FALSE_RATE, KINDS} = constants().verdicts;
        const {CALL_MARGIN} = constants().compare;
        const tally = tallied(changes);
        const told = Object.keys(KINDS).filter((verdict) => tally.has(verdict));
        const counts = told.map((verdict) => `${tally.get(verdict)} ${shown(verdict)}`).join(", ");
        const lines = [`${from} -> ${to} on ${lane.machine.machine}, ${lane.environment}: ${counts}.`];
        const times = changes.filter((one) => varies(lane.series[one.series]) && one.old !== null && one.new !== null);
        const single = times.filter((one) => one.confidence === null && !one.reason).length;
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
                    detectable: one.detectable, spread: one.spread, launches: one.launches, disturbed: one.disturbed,
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

    /* Of each {own, other}, two series of one metric: how many times as much the other takes on one release, from the rounds
       that measured both. The intervals of all others of one series hold together. What no two rounds tell is left out. */
    const against = (lane, pairs, tag) => {
        const {ERROR_RATE} = constants().verdicts;
        const at = placeOf(lane, tag);
        const launches = ({pattern, numbers}) => new Map((indexOf(lane).launches[pattern].get(at) || [])
            .map((i) => [lane.patterns[pattern][i][1], numbers[i]]));
        const rivals = counted(pairs.map(({own}) => own));
        const exactly = (pair) => {
            const [own, other] = [pair.own, pair.other].map((series) => [...launches(series).values()].at(-1));
            return own > 0 && other > 0 ? [{...pair, ratio: other / own, low: other / own, high: other / own}] : [];
        };
        const estimates = new Map(pairs.filter(({own}) => varies(own)).map((pair) => {
            const [own, other] = [launches(pair.own), launches(pair.other)];
            const both = [...own.keys()].filter((block) => own.get(block) > 0 && other.get(block) > 0);
            const of = {...pair, metric: pair.own.metric, question: pair.own.question};
            return [of, paired(Float64Array.from(both, (block) => Math.log(other.get(block)) - Math.log(own.get(block))))];
        }));
        const known = weigh(new Map([...estimates].filter(([, {freedom}]) => freedom > 0)));
        const told = Array.from(known, ([{own, other}, evidence]) => {
            const [low, high] = interval(evidence, 1 - 2 * ERROR_RATE / rivals.get(own));
            return {own, other, ratio: Math.exp(evidence.shift), low, high};
        });
        return [...told, ...pairs.filter(({own}) => !varies(own)).flatMap(exactly)];
    };

    const adjacent = (lane, tag) => {
        const before = lane.releases[placeOf(lane, tag) - 1];
        return before ? before.tag : null;
    };

    /* The facts that differ, in words: name -> [old, new]. */
    const moved = (lane, from, to) => Object.fromEntries(movedFacts(lane, from, to).map(([fact, values]) =>
        [constants().why.ENVIRONMENT[fact] || "TorchScript fuses on a CPU",
         values.map((value) => said(value, "yes", "no"))]));

    TH.verdicts = {compare, against, adjacent, moved, summary, unchanged, bare, escape, csv, json, human, name, varies, shown, inOneLine,
                   numeric: {student, quantile, digamma, trigamma, whereTrigamma, fixed}};
})();
