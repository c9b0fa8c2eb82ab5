"use strict";

/* What does an upgrade cost? The bottom line and a picture, questions over all releases, findings, and every case. */
(() => {
    const TH = window.torchHistory;
    const {el, folded, sentence} = TH;

    const MOST_ROWS = 50;

    const button = (id, text, click, attributes = {}) => el("button", {id, type: "button", click, ...attributes}, text);

    // --- the two releases

    const pickers = (lane, from, to) => {
        const tags = lane.releases.map(({tag}) => tag).reverse();
        const options = (chosen) => [...tags.includes(chosen) ? [] : [[chosen || "", chosen || "choose"]],
                                     ...tags.map((tag) => [tag, tag])];
        return el("div", {class: "controls"}, TH.select("From", "from", options(from), from), TH.select("To", "to", options(to), to));
    };
    const refusal = (lane, from, to) => {
        const tags = lane.releases.map(({tag}) => tag);
        const machine = TH.laneWords(lane);
        const unknown = [from, to].find((tag) => tag !== null && !tags.includes(tag));
        if (unknown !== undefined) {
            const beside = TH.beside(tags, unknown);
            return `There are no results of '${unknown}' on ${machine}: choose ${beside.length ? beside.join(" or ") : "another release"}.`;
        }
        if (tags.length === 1) {
            return `${tags[0]} is the only release measured on ${machine}: measure another to compare it with.`;
        }
        if (from === to) {
            return `${to} was chosen on both sides: choose two releases.`;
        }
        return from === null && `${to} is the oldest release measured on ${machine}: choose what to compare it with.`;
    };

    /* What is shown and was not asked for: To where another lane has no such release, and two releases that change places. */
    let before = null;
    const unasked = (lane, address, from, to) => {
        const isOther = before && before.lane !== lane.id && !address.to && before.to !== to;
        const isSwapped = address.from && address.to && TH.tagOf(lane.releases.map(({tag}) => tag), address.to) !== to;
        const said = [
            isOther && `${to} is the newest release measured on ${TH.laneWords(lane)}: To was ${before.to}, and is ${to} now.`,
            isSwapped && `${from} is older than ${to}, so it stands first.`,
        ].filter(Boolean).join(" ");
        before = {lane: lane.id, to};
        return {isSwapped, nodes: said && el("p", {id: "unasked", role: "status"}, said)};
    };

    // --- the first screen

    /* What other lanes say first of the same two releases: what was timed where it was, and memory. */
    const other = ({said, typical}) => [typical && `typically ${said.typical}`, `peak memory: ${said.memory}`].filter(Boolean).join("; ");
    const elsewhere = (lane, others) => {
        const rest = others.filter((each) => each.lane !== lane.id);
        const namesOf = (of) => of.map(({questions}) => Object.keys(questions).map((name) => ` ${TH.words(name)}`).sort().join()).join();
        const own = namesOf(others.filter((each) => each.lane === lane.id));
        const asked = (each) => (namesOf([each]) && namesOf([each]) !== own ? `, other questions (${namesOf([each]).trim()})` : "");
        const isGpu = TH.device(lane) !== "cpu";
        const isBeside = ({device}) => (device === "cpu") === isGpu;
        const [first, ...more] = rest.filter(isBeside);
        const alike = rest.filter((each) => !isBeside(each));
        const told = (each) => [el("a", {href: TH.link("index.html", {lane: each.lane})}, each.words), `${asked(each)}: ${other(each)}.`];
        const unfolding = (id, of) => of.length > 0 && folded(id, `${of.length} other ${of.length === 1 ? "lane" : "lanes"}`,
            el("ul", {}, of.map((each) => el("li", {}, told(each)))));
        return rest.length > 0 && [
            [isGpu ? "CPU" : "CUDA", [first ? told(first) : "Not measured on both.", unfolding("other-lanes", more)]],
            alike.length > 0 && [isGpu ? "Other GPUs" : "Other CPUs", unfolding("lanes-alike", alike)],
        ];
    };
    const lost = (pair, wheels) => {
        const [old, now] = [pair.old, pair.new].map((tag) => wheels[tag]);
        const said = old && now && TH.common.lost(old.architectures, now.architectures, pair.old, pair.new);
        return said && el("strong", {class: "worse"}, said);
    };
    const bottomLine = (lane, pair, others, wheels) => {
        const keys = {from: pair.old, to: pair.new};
        const linked = (name) => {
            const since = / \(since ([^)]+)\)$/u.exec((pair.byPlace.get(pair[name]) || {why: ""}).why);
            return pair[name] === null ? sentence(pair.said[name]) : [el("a", {href: TH.historyOf(lane.series[pair[name]], keys)},
                TH.prose(sentence(pair.said[name]))), since && ` Since ${since[1]}.`];
        };
        const gone = lost(pair, wheels);
        const rows = [
            pair.said.worst && ["Worst", linked("worst")],
            pair.said.best && ["Best", linked("best")],
            ["Peak memory", [sentence(pair.said.memory), pair.said.hungriest && [" Most: ", TH.prose(pair.said.hungriest), "."]]],
            ["Broke", sentence(pair.said.broke)],
            gone && ["GPUs lost", gone],
            pair.said.decided && ["Decided", sentence(pair.said.decided)],
            pair.said.undecided && ["Undecided", sentence(pair.said.undecided)],
            ["Measured", `${TH.laneWords(lane)}.`],
            ...elsewhere(lane, others) || [],
        ];
        const typical = pair.typical ? ["typically ", el("strong", {class: kindOf(pair.typical)}, pair.said.typical)]
            : ["nothing was timed; peak memory: ", el("strong", {}, TH.prose(pair.said.memory))];
        return [
            el("h2", {id: "headline"}, `${pair.old} → ${pair.new}: `, typical, "."),
            el("dl", {id: "bottom-line"}, rows.filter(Boolean).map(([name, said]) => el("div", {}, el("dt", {}, name), el("dd", {}, said)))),
        ];
    };
    const kindOf = ({ratio, low, high}) => {
        const most = 1 + TH.contents.margin;
        return low > 1 && ratio > most ? "worse" : high < 1 && ratio * most < 1 ? "better" : null;
    };

    const picture = (pair, address, room) => {
        const of = (name) => pair.rows.filter((row) => pair.main[name].includes(row.series.benchmark) && row.ratio > 0);
        const [times, memory] = [of("times"), of("memory")];
        const what = !times.length || (address.picture === "memory" && memory.length) ? "memory" : "times";
        const points = what === "times" ? times : memory;
        if (!points.length) {
            return null;
        }
        const typical = what === "times" ? pair.questions : {};
        const choose = (name, words, count) => button(`picture-${name}`, `${words} (${count})`, () => TH.go({picture: name === "times" ? null : name}),
                                                      {"aria-pressed": String(what === name)});
        return el("section", {class: "first", "aria-labelledby": "picture-title"},
            el("div", {class: "controls"}, el("h3", {id: "picture-title"}, "Every case"),
               times.length > 0 && choose("times", "Times", times.length), memory.length > 0 && choose("memory", "Peak memory", memory.length)),
            TH.casesPicture({points, typical, what, href: (row) => TH.historyOf(row.series, {from: pair.old, to: pair.new})}, room),
            TH.casesKey(points, typical, what), el("p", {class: "quiet"}, pair.not_measured));
    };

    // --- every case

    const byName = (rows) => {
        const {compare} = new Intl.Collator("en", {numeric: true});  // slow to make: only where it is asked for
        return [...rows].sort((a, b) => compare(TH.name(a.series), TH.name(b.series)));
    };
    /* What has no ratio, as what broke, is last in either order. */
    const byRatio = (rows, sign) => [...rows].sort((a, b) => Number(b.ratio > 0) - Number(a.ratio > 0) || sign * (a.ratio - b.ratio));
    const ORDERS = {
        verdict: (rows) => rows,
        series: byName,
        ratio: (rows) => byRatio(rows, -1),
        "-ratio": (rows) => byRatio(rows, 1),
    };
    const sorted = (rows, sort) => (ORDERS[sort] || ORDERS.verdict)(rows);
    const row = (each, keys) => [
        {text: [el("a", {href: TH.historyOf(each.series, keys)}, TH.name(each.series)), el("div", {class: "quiet"}, TH.prose(TH.inCode(each.series)))]},
        TH.mark(each.verdict),
        {text: each.ratio > 0 ? TH.ratioWords(each, each.series.unit) : "", class: "ratio"},
        {text: `${TH.human(each.old, each.series.unit) || "no number"} → ${TH.human(each.new, each.series.unit) || "no number"}`, class: "ratio"},
        {text: each.why || each.reason, class: "why"},
    ];
    const cases = (pair, address) => {
        const keys = {from: pair.old, to: pair.new};
        const asked = (address.verdict || "").split(",").filter(Boolean);
        const strangers = asked.filter((verdict) => !TH.kind(verdict));
        const wanted = (address.search || "").toLowerCase().split(/\s+/u).filter(Boolean);
        const text = ({series, verdict, why, reason}) => `${TH.name(series)} ${TH.inCode(series)} ${TH.shown(verdict)} ${why} ${reason}`.toLowerCase();
        const others = pair.rows.filter((each) => ["question", "metric", "variant"].every((key) => !address[key] || each.series[key] === address[key])
            && wanted.every((word) => text(each).includes(word)));
        const chosen = asked.filter((verdict) => TH.kind(verdict));
        const shown = sorted(others.filter(({verdict}) => !chosen.length || chosen.includes(verdict)), address.sort || "verdict");
        const first = address.all ? shown : shown.slice(0, MOST_ROWS);
        const rest = first.length < shown.length ? `, the first ${first.length} of them` : "";
        const namesOf = (key) => [...new Set(pair.rows.map(({series}) => series[key]))].sort();
        const options = (all, key) => [["", all], ...namesOf(key).map((name) => [name, TH.words(name)])];
        const counts = TH.common.counted(others.map(({verdict}) => verdict));
        const chip = ([verdict]) => {
            const isOn = chosen.includes(verdict);
            const next = isOn ? chosen.filter((each) => each !== verdict) : [...chosen, verdict];
            return button(`verdict-${verdict.replace(/\W+/gu, "-")}`, [el("strong", {}, `${counts.get(verdict) || 0} `), TH.mark(verdict)],
                          () => TH.go({verdict: next.join(",")}), {"aria-pressed": String(isOn)});
        };
        const isFiltered = Boolean(chosen.length || wanted.length || address.question || address.metric || address.variant);
        const table = TH.table({caption: "Cases with verdict, ratio and cause", head: ["Case", "Verdict", "New / old", "From → to", "Why"], rows: first.map((each) => row(each, keys))});
        table.classList.add("changes");
        return el("details", {id: "every-case", open: isFiltered || strangers.length > 0 || Boolean(address.all || address.sort || address.cases), toggle: ({target}) => TH.keep({cases: target.open ? "1" : null})},
            el("summary", {}, el("h2", {}, `${pair.rows.length.toLocaleString("en")} series`)),
            strangers.length > 0 && el("p", {role: "alert"}, `There is no verdict '${strangers.join("', '")}': choose below.`),
            el("div", {class: "tally", role: "group", "aria-label": "Only these verdicts"}, TH.tally(pair.rows).map(chip)),
            el("div", {class: "controls"},
               TH.select("Question", "question", options("all questions", "question"), address.question || ""),
               TH.select("Metric", "metric", options("all metrics", "metric"), address.metric || ""),
               TH.select("Order", "sort", [["", "worst first"], ["ratio", "largest ratio first"], ["-ratio", "smallest ratio first"], ["series", "by name"]], address.sort || ""),
               TH.search("Contains", "search", address.search),
               isFiltered && button("clear", "Clear filters", () => TH.go({verdict: null, search: null, question: null, metric: null, variant: null}))),
            el("p", {id: "count", class: "quiet", role: "status"}, shown.length ? `${shown.length} of ${pair.rows.length} series${rest}.`
                : "No series matches: choose other verdicts, another question or metric, or other words."),
            shown.length > 0 && el("p", {class: "quiet"}, "New / old is fitted to the launches of all releases together; From → to are medians of each "
                + "release's own. Where launches scatter, the two can disagree."),
            shown.length > 0 && table,
            first.length < shown.length && el("p", {}, button("show-all", `Show all ${shown.length}`, () => TH.go({all: "1", cases: "1"}))));
    };

    // --- what else

    const brought = (pair, wheels) => {
        const [old, now] = [pair.old, pair.new].map((tag) => wheels[tag]);
        const compare = `https://github.com/pytorch/pytorch/compare/${pair.old}...${pair.new}`;
        const names = old && now ? [...new Set([...Object.keys(old.told), ...Object.keys(now.told)])] : [];
        const rows = names.map((name) => [name, old.told[name] || "-", now.told[name] || "-"]).filter(([, was, is]) => was !== is);
        return folded("brought", "What else the upgrade brings",
            el("p", {}, el("a", {href: compare}, `PyTorch's changes from ${pair.old} to ${pair.new}`), ". ",
               el("a", {href: TH.link("facts.html", {from: pair.old, to: pair.new})}, "What the wheels of all releases bring, in bytes"), "."),
            old && now && el("p", {}, TH.common.gpus(old.architectures, now.architectures, pair.old, pair.new), " ",
                             TH.common.lastWith(old.architectures, now.architectures, TH.contents.wheels, TH.contents.architectures)),
            pair.environments.map((said) => el("p", {}, said)),
            rows.length > 0 && TH.table({caption: "What the wheels say", head: ["what", pair.old, pair.new], rows}));
    };
    const sure = (lane, pair) => {
        const command = TH.command("compare", pair.old, pair.new, "--machine", pair.machine, "--lane", pair.environment);
        return folded("sure", "How sure this is, and what was not measured",
            el("p", {}, "The typical ratio is the geometric mean over the cases of each question, and of these over the questions. Its interval "
               + "covers only these cases; your program may differ more. ", pair.counted),
            el("p", {}, TH.explained([...pair.sure, ...pair.again].join(" ")), " ", el("a", {href: TH.method("verdicts")}, "How a verdict is made"), ". ",
               el("a", {href: TH.method("calibration")}, "Which changes verdicts find"), "."),
            el("p", {id: "not-measured"}, pair.not_measured),
            el("p", {}, "On the command line: ", command, "; with ", el("code", {}, "--json"), " or ", el("code", {}, "--markdown"),
               " to take it along. For programs: ", el("a", {href: `data/pairs/${pair.old}-${pair.new}.json`}, "these two releases as JSON"), "."));
    };

    const headed = (series, findings) => (series === 0 ? "Findings" : series === 1 ? "1 changed series is 1 finding"
        : `${series} changed series are ${findings} finding${findings === 1 ? "" : "s"}`);

    TH.page({
        title: (lane, address) => {
            const {from, to} = TH.chosen(lane, address);
            return from ? `From ${from} to ${to}` : `Upgrade to ${to}`;
        },
        needs: async (lane, address) => {
            const {from, to} = TH.chosen(lane, address);
            const known = [from, to].filter((tag) => TH.contents.wheels.includes(tag));
            const isPair = lane.releases.filter(({tag}) => tag === from || tag === to).length === 2;
            const [pair, of, ...wheels] = await Promise.all([TH.pair(lane, from, to),
                isPair ? TH.file(`pairs/${from}-${to}`) : {lanes: []}, ...known.map((tag) => TH.file(`wheels-${tag}`))]);
            return {pair, others: of.lanes, wheels: Object.fromEntries(known.map((tag, i) => [tag, wheels[i]]))};
        },
        render: async (lane, address, main, {pair, others, wheels}) => {
            const room = main.clientWidth;  // before anything is added: the page is laid out once
            const {from, to} = TH.chosen(lane, address);
            const {isSwapped, nodes} = unasked(lane, address, from, to);
            main.append(pickers(lane, from, to), nodes || "");
            const newest = lane.releases.at(-1).tag;
            const refused = refusal(lane, from, to);
            if (refused) {
                main.append(el("p", {role: "alert"}, refused));
            } else if (!pair.rows.length) {
                main.append(el("h2", {id: "headline"}, `${from} → ${to}: nothing in common`), el("p", {}, "No series was measured on both in the same "
                    + "size and version.", TH.measure(lane, " Measure them together: ", from, to)));
            } else {
                const [headline, list] = bottomLine(lane, pair, others, wheels);
                main.append(headline, picture(pair, address, room) || "", list);
            }
            const rest = el("div", {});
            main.append(rest);
            const painted = new Promise((done) => requestAnimationFrame(() => setTimeout(done)));  // what stands in a frame is painted after it
            await Promise.race([painted, new Promise((done) => setTimeout(done, 500))]);  // no frame comes to a page that is not seen
            const [bases] = await Promise.all([TH.file("bases"), TH.scripts("findings.js", "questions.js")]);
            rest.append(el("section", {"aria-labelledby": "questions-title"}, el("h2", {id: "questions-title"}, `${bases.claims.length} claims over all releases`),
                           TH.answersKey(), TH.questionCharts(lane, bases, [from, to].filter(Boolean))));
            if (pair && pair.rows.length) {
                const series = pair.findings.reduce((sum, {series: of}) => sum + of.length, 0);
                rest.append(
                    el("section", {"aria-labelledby": "findings-title"}, el("h2", {id: "findings-title"}, headed(series, pair.findings.length)),
                       TH.findings(lane, pair)),
                    cases(pair, address), brought(pair, wheels), sure(lane, pair));
            }
            if (to === newest && TH.contents.newest.tag !== newest) {
                rest.append(el("p", {}, `The newest release, ${TH.contents.newest.tag}, is not measured here.`,
                    TH.measure(lane, " To measure it: ", newest, TH.contents.newest.tag)));
            }
            if (isSwapped) {
                TH.keep({from, to});
            }
        },
    });
})();
