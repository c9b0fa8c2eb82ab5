"use strict";

/* What belongs together, in words, and the answer in a line each. Which changes belong together pairs.py says. */
(() => {
    const TH = window.torchHistory;
    const {bound, counted, fixed, times} = TH.common;
    const {escape, human, inOneLine, name, shown, summary, unchanged, varies} = TH.verdicts;
    const constants = () => TH.contents.constants;

    const words = (text) => text.replaceAll("_", " ");
    const operator = (variant) => variant.replace(new RegExp(`^${constants().findings.CPP}`), "");
    const isMissing = (verdict) => ["BROKE", "FIXED"].includes(verdict);
    const titleOf = (question, because) => {
        const known = constants().why.FOUND.find(([, ofQuestion, , , , said, , , , , title]) =>
            ofQuestion === question && title && because.includes(said));
        return known ? known[10] : "";
    };

    /** The lesser first; equal ones stay in their order. */
    const ascending = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
    const by = (key) => (one, other) => ascending(key(one), key(other));

    // --- rows

    const rowOf = (lane, change) => {
        const series = lane.series[change.series];
        const parameters = series.parameters.map((parameter) => parameter.replace(/^'+|'+$/gu, ""));
        return {...change, of: series, parameters, variant: parameters[0] || "", because: change.why || ""};
    };
    const findings = (lane, {findings: told}) => told.map(({because, explained, rows}) =>
        finding(rows.map((change) => rowOf(lane, change)), because, explained));

    // --- findings

    const finding = (rows, because, explained) => {
        const ratios = rows.map((row) => row.ratio).filter(Boolean);
        const [best] = rows;
        return {
            rows, best, verdict: best.verdict, kind: best.kind, because, explained,
            cases: new Set(rows.map((row) => JSON.stringify(row.parameters))).size,
            ratios: ratios.length === rows.length ? [Math.min(...ratios), Math.max(...ratios)] : null,
        };
    };

    const title = ({rows, best, verdict, because, cases}) => {
        const named = titleOf(best.of.question, because);
        if (named) {
            return named;
        }
        const metrics = [...new Set(rows.map((row) => row.of.metric))].join(" and ");
        const [question, metric] = [words(best.of.question), words(metrics)];
        const variants = [...new Set(rows.map((row) => operator(row.variant)))].join(" and ");
        if (isMissing(verdict)) {
            return `${question}, ${cases === 1 ? name(best.of).split(", ").slice(1).join(", ") : variants}`;
        }
        return rows.length === 1 ? name(best.of) : `${question} ${metric}, ${variants}`;
    };

    const brief = (found) => `${title(found)}: ${how(found)}` + (found.cases > 1 ? ` in ${found.cases} cases` : "");

    const sentence = (found) => {
        const [since, because] = sinceOf(found.because);
        const said = brief(found) + (since ? ` since ${since}` : "");
        if (isMissing(found.verdict)) {
            return `${said}: ${short(inOneLine(found.best.reason)).replace(/\.+$/u, "")}.`;
        }
        if (!found.because) {
            return `${said}${varies(found.best.of) || found.best.of.unit === "bytes" ? ", unexplained" : ""}.`;
        }
        const isWhole = found.explained === found.rows.length;
        return isWhole ? `${said}, ${because}.` : `${said}; ${found.explained} of them ${because}.`;
    };

    /* `because an index … (since 2.14.0)` -> 2.14.0 and `because an index …`. */
    const sinceOf = (because) => {
        const match = /^(because .+) \(since ([\d.]+(?:(?:, | and )[\d.]+)*)\)$/u.exec(because);
        return match && !match[1].includes(" (since ") ? [match[2], match[1]] : ["", because];
    };
    const short = (reason) => {
        const most = constants().findings.LONGEST_REASON;
        const cut = [...reason].slice(0, most).join("");
        return [...reason].length <= most ? reason : `${cut.slice(0, Math.max(0, cut.lastIndexOf(" ")))} …`;
    };

    const how = ({rows, best, verdict, ratios}) => {
        if (isMissing(verdict)) {
            return verdict === "BROKE" ? "no longer runs" : "runs now, and did not before";
        }
        const alone = rows.length === 1;
        const isTime = ["SLOWER", "FASTER"].includes(verdict);
        if (isTime && ratios) {
            const factors = (ends) => ends.map((ratio) => (verdict === "FASTER" ? 1 / ratio : ratio)).sort(ascending);
            const interval = alone && best.low && best.high ? ` (${factors([best.low, best.high]).map(bound).join(" to ")})` : "";
            return `${range(factors(ratios))} times ${verdict.toLowerCase()}${interval}`;
        }
        const {unit} = best.of;
        const numbers = `${human(best.old, unit)} to ${human(best.new, unit)}`;
        const rose = ["HUNGRIER", "MORE", "SLOWER"].includes(verdict);
        const word = rose ? "more" : unit === "bytes" ? "less" : "fewer";
        if (!ratios) {
            return `${word}, ${alone ? "" : "such as "}from ${numbers}`;
        }
        const factors = range(ratios.map((ratio) => Math.max(ratio, 1 / ratio)));
        const said = factors === "1.00" && unit === "bytes" ? `${bytesOf(rows)} ${word}` : `${upTo(factors)} times ${word}`;
        if (alone) {
            return `${said}, from ${numbers}`;
        }
        const amounts = alikeAmounts(rows);
        return amounts.length ? `${megabytes(amounts)} MB ${word} each (${said})` : said;
    };
    /* By how many bytes each row changed, where they are alike and lie closer together than ratios do. */
    const alikeAmounts = (rows) => {
        const pairs = rows.filter(({of, old, new: now}) => of.unit === "bytes" && old && now);
        const amounts = pairs.map(({old, new: now}) => Math.abs(now - old));
        if (pairs.length < rows.length || Math.min(...amounts) < constants().findings.LEAST_AMOUNT) {
            return [];
        }
        const shares = pairs.map(({old}, i) => amounts[i] / old);
        const spread = (numbers) => Math.max(...numbers) / Math.min(...numbers);
        return spread(amounts) < Math.min(constants().findings.ALIKE, spread(shares)) ? amounts : [];
    };
    const megabytes = (amounts) => ends([Math.min(...amounts), Math.max(...amounts)].map((amount) => {
        const [whole, rest] = fixed(amount / 1e6, 1).split(".");
        return `${thousands(whole)}.${rest}`;
    }));
    const thousands = (text) => text.replace(/\B(?=(\d{3})+$)/gu, ",");
    const bytesOf = (rows) => {
        const amounts = rows.map(({old, new: now}) => Math.abs(now - old));
        return ends([Math.min(...amounts), Math.max(...amounts)].map((amount) => human(amount, "bytes")));
    };
    const ends = (numbers) => {
        const [least, most] = numbers;
        return least === most ? least : `${least} to ${most}`;
    };
    /* `1.00 to 54` -> `up to 54`: 1.00 times more reads as no change at all. */
    const upTo = (factors) => factors.replace(/^1\.00 to /u, "up to ");
    const range = (factors) => ends([Math.min(...factors), Math.max(...factors)].map(times));

    /* At most so many, those that cost first: these have half of the places where there are enough. */
    const picked = (found, most = constants().answer.MOST_FINDINGS) => {
        const worse = found.filter(({kind}) => kind === "worse");
        const others = found.filter(({kind}) => kind !== "worse");
        const first = worse.slice(0, Math.max(most - others.length, Math.floor(most / 2)));
        return [...first, ...others.slice(0, most - first.length)];
    };

    // --- cards

    const SAID = {
        SLOWER: "slower", FASTER: "faster", HUNGRIER: "higher", LEANER: "lower", MORE: "higher", FEWER: "lower",
        SAME: "the same", "CAN'T TELL": "inconclusive",
    };
    const measured = ({metric}) => (constants().metrics[metric] || {}).measured;
    const isFirstCall = (series) => measured(series) === "sequence";
    const isTime = (series) => varies(series) && !isFirstCall(series);
    const isMemory = ({unit}) => unit === "bytes";
    const isCount = (series) => !(isTime(series) || isFirstCall(series) || isMemory(series));
    const CARDS = [
        {card: "Time", belongs: isTime, isByMetric: false}, {card: "First calls", belongs: isFirstCall, isByMetric: false},
        {card: "Memory", belongs: isMemory, isByMetric: true}, {card: "Counts", belongs: isCount, isByMetric: true},
    ];

    const tallied = (changes) => {
        const tally = counted(changes.map(({verdict}) => SAID[verdict]));
        if (tally.size === 1) {
            const [word] = tally.keys();
            return `${word[0].toUpperCase()}${word.slice(1)} in all ${thousands(String(changes.length))} series.`;
        }
        const [first, ...rest] = [...new Set(Object.values(SAID))].filter((word) => tally.has(word))
            .map((word) => [word, thousands(String(tally.get(word)))]);
        const start = `${first[1]} of ${thousands(String(changes.length))} series ${first[0]}`;
        return [start, ...rest.map(([word, count]) => `${count} ${word}`)].join(", ") + ".";
    };
    const byMetric = (lane, changes) => {
        const of = new Map();
        changes.forEach((change) => {
            const {metric} = lane.series[change.series];
            of.set(metric, [...(of.get(metric) || []), change]);
        });
        const order = Object.keys(constants().metrics);
        const place = (metric) => (order.includes(metric) ? order.indexOf(metric) : order.length);
        return [...of.keys()].sort(by(place)).map((metric) => {
            const [said, verdict] = [words(metric), tallied(of.get(metric))];
            return `${said.slice(0, 1).toUpperCase()}${said.slice(1)}: ${verdict[0].toLowerCase()}${verdict.slice(1)}`;
        }).join(" ");
    };

    /* The cards of a comparison that have a series, and last what broke. */
    const cards = (lane, changes, found) => {
        const said = CARDS.flatMap(({card, belongs, isByMetric}) => {
            const theirs = changes.filter((change) => belongs(lane.series[change.series]) && change.verdict in SAID);
            const of = found.filter((one) => belongs(one.best.of) && one.verdict in SAID);
            const [worst, best] = ["worse", "better"].map((kind) => of.find((one) => one.kind === kind) || null);
            const verdict = isByMetric ? byMetric(lane, theirs) : theirs.length && tallied(theirs);
            return theirs.length ? [{name: card, verdict, worst, best}] : [];
        });
        return [...said, running(lane, changes, found)];
    };
    /* Verdicts that stand on more than one card, so that no card has all of them: [verdict, [[card, how many]]]. */
    const apart = (lane, changes) => Object.keys(SAID).map((verdict) => {
        const ofVerdict = changes.filter((change) => change.verdict === verdict && change.kind in constants().compare.HEADINGS);
        const parts = CARDS.map(({card, belongs}) =>
            [card, ofVerdict.filter((change) => belongs(lane.series[change.series])).length]);
        return [verdict, parts.filter(([, count]) => count)];
    }).filter(([, parts]) => parts.length > 1);
    const running = (lane, changes, found) => {
        const of = new Map();
        changes.forEach((change) => {
            const {question, parameters} = lane.series[change.series];
            const key = JSON.stringify([question, parameters]);
            of.set(key, [...(of.get(key) || []), change]);
        });
        const isNever = ({verdict}) => verdict === "NEVER RAN";
        const [never, ran] = [[...of.values()].filter((each) => each.every(isNever)), [...of.values()].filter((each) => !each.every(isNever))];
        const [broke, runs] = ["BROKE", "FIXED"].map((word) => ran.filter((each) => each.some(({verdict}) => verdict === word)).length);
        const others = ran.flat().filter(isNever);
        const many = (count, one, more) => `${thousands(String(count))} ${count === 1 ? one : more}`;
        const ofCases = [
            broke ? `${broke} of ${ran.length} cases broke.` : ran.length && `Nothing broke in ${many(ran.length, "case", "cases")}.`,
            runs && `${runs} run now and did not before.`,
            never.length && `${many(never.length, "more case", "more cases")} ran on neither release: ${reasons(never.map(([one]) => one))}.`,
        ].filter(Boolean).join(" ");
        const ofSeries = others.length
            && `In cases that ran, ${many(others.length, "series has", "series have")} no number on either release: ${reasons(others)}.`;
        const verdict = [ofCases, ofSeries].filter(Boolean).join(" ");
        const [worst, best] = ["BROKE", "FIXED"].map((word) => found.find((one) => one.verdict === word) || null);
        return {name: "Broke", verdict, cases: ofCases, series: ofSeries, worst, best};
    };
    /* `a copy needs a GPU (9); no compiler (6)`: up to its first semicolon each, the most frequent first. */
    const reasons = (changes) => {
        const tally = [...counted(changes.map(({reason}) => short(inOneLine(reason).split(";")[0]).replace(/\.+$/u, "") || "no reason is stored"))]
            .sort(([, one], [, two]) => two - one);
        const most = constants().answer.MOST_REASONS;
        const rest = tally.slice(most).reduce((total, [, count]) => total + count, 0);
        return [...tally.slice(0, most).map(([reason, count]) => `${reason} (${count})`), ...(rest ? [`other reasons (${rest})`] : [])].join("; ");
    };
    // --- Markdown

    /* The findings for a pull request or an issue; `link` is the address of the comparison, empty where nobody else has it. */
    const markdown = (lane, from, to, changes, link = "") => {
        const {MOST_OF_FINDINGS, _MOST_OF_THE_END, _ROOM_FOR_WORDS, SAID_FIRST} = constants().compare;
        const found = findings(lane, changes);
        const rest = changes.filter(({kind}) => !SAID_FIRST.includes(kind));
        const parts = [`### PyTorch ${escape(from)} → ${escape(to)}`];
        const whole = summary(lane, from, to, changes).map(escape).join("  \n");
        const start = whole.slice(0, _MOST_OF_THE_END);
        const end = whole === start ? whole : `${start.slice(0, start.lastIndexOf(" "))} …`;
        const command = escape(`torch-history compare ${from} ${to} --machine ${lane.machine.machine} ` +
                               `--lane ${lane.environment} --all`);
        if (!found.length) {
            const said = unchanged(lane, changes);
            parts.push(`${said[0].toUpperCase()}${said.slice(1)}.`);
        }
        const [lists, leftOut] = byKind(found, MOST_OF_FINDINGS - _ROOM_FOR_WORDS
            - end.length - 2 * command.length - link.length);
        parts.push(...lists);
        if (leftOut) {
            parts.push(`${leftOut} findings are omitted to keep this short enough to send. To see them: ${command}`);
        }
        if (rest.length) {
            const tally = counted(rest.map(({verdict}) => verdict));
            const told = Array.from(tally, ([verdict, count]) => `${count} ${escape(shown(verdict))}`).join(", ");
            parts.push(`Not listed: ${told}. To list every series: ${command}`);
        }
        if (link) {
            parts.push(`[Every series, with its history](${link})`);
        }
        return `${[...parts, end].join("\n\n")}\n`;
    };
    /* Lists of the findings, those that cost first, as many as have room in characters; and how many are left out. */
    const byKind = (found, most) => {
        const {HEADINGS} = constants().compare;
        let [room, left] = [most, found.length];
        const parts = Object.entries(HEADINGS).flatMap(([kind, heading]) => {
            const ofKind = found.filter((one) => one.kind === kind);
            const lines = ofKind.map((one) => `- ${escape(sentence(one))}`);
            const rows = ofKind.reduce((count, one) => count + one.rows.length, 0);
            const count = `${ofKind.length} ${ofKind.length === 1 ? "finding" : "findings"}, ${rows} series`;
            const head = `**${heading}** (${count})\n`;
            room -= head.length + 1;
            let used = 0;
            const listed = lines.filter((line) => (used += line.length + 1) <= room);
            room -= listed.reduce((total, line) => total + line.length + 1, 0);
            left -= listed.length;
            return listed.length ? [[head, ...listed].join("\n")] : [];
        });
        return [parts, left];
    };

    TH.answer = {findings, cards, apart, picked, brief, sentence, title, markdown};
})();
