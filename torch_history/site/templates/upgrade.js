"use strict";

/* What does an upgrade from A to B cost? Every series with verdict, ratio and cause, to filter, sort and take along. */
(() => {
    const TH = window.torchHistory;
    const V = TH.verdicts;
    const {el} = TH;

    const ROWS_FIRST = 200;
    const CHANGED = ["worse", "better", "changed"];

    let last = {};
    const compared = (lane, old, tag) => {
        if (last.lane !== lane || last.old !== old || last.tag !== tag) {
            last = {lane, old, tag, changes: V.compare(lane, old, tag)};
        }
        return last.changes;
    };

    const button = (id, text, click, attributes = {}) => el("button", {id, type: "button", click, ...attributes}, text);

    // --- words

    const isTime = TH.verdicts.varies;
    const machine = (lane) => TH.contents.lanes.find((each) => each.id === lane.id).words;
    const {bound, times} = TH.common;
    const factor = (ratio, series) => {
        const less = isTime(series) ? "faster" : series.unit === "bytes" ? "less" : "fewer";
        const word = ratio < 1 ? less : isTime(series) ? "slower" : "more";
        const said = `${times(Math.max(ratio, 1 / ratio))} times`;
        return said === "1.00 times" ? said : `${said} ${word}`;
    };

    /** "7.90 times slower", "from none". */
    const ratioWords = (change, series) => {
        if (change.old === null || change.new === null) {
            return "";
        }
        if (!change.ratio) {
            return change.ratio === 0 ? "to none" : "from none";
        }
        return change.ratio === 1 && !isTime(series) ? "equal"
            : factor(change.ratio, series);
    };
    const intervalWords = ({ratio, low, high, kind}, series) => {
        if (!isTime(series) || !ratio || low === null || high === null) {
            return "";
        }
        const ends = ratio >= 1 ? [low, high] : [1 / high, 1 / low];
        return `${ends.map(["worse", "better"].includes(kind) ? bound : times).join(" to ")} times`;
    };
    const launchesWords = (change) => {
        const [old, now] = change.launches;
        const each = old !== now ? `${old} and ${now} launches` : `${old} launch${old === 1 ? "" : "es"} each`;
        return change.disturbed ? `${each}, ${change.disturbed} disturbed` : each;
    };
    const fromTo = (change, {unit}) => {
        const value = (number) => el("span", {class: "value"}, number === null ? "no number" : TH.human(number, unit));
        return el("span", {}, value(change.old), " → ", value(change.new));
    };

    /** Why it changed, why there is no number, or what stands in the way of a verdict: what the sentence ends with. */
    const because = (change, series) => {
        if (change.why || change.reason) {
            const isFixed = change.old === null && change.new !== null;
            return change.why || (isFixed ? `before, ${change.reason}` : change.reason);
        }
        const start = `${TH.name(series)}: ${TH.shown(change.verdict)}`;
        return change.kind === "can't tell" && change.sentence.startsWith(start)
            ? change.sentence.slice(start.length).split(": ").slice(1).join(": ").replace(/\.$/, "") : "";
    };

    // --- the two releases

    const pickers = (lane, from, to) => {
        const tags = lane.releases.map((release) => release.tag).reverse();
        const options = (chosen) => {
            const known = tags.map((tag) => [tag, tag]);
            const stranger = chosen ? [chosen, `${chosen} (not measured)`] : ["", "choose"];
            return tags.includes(chosen) ? known : [stranger, ...known];
        };
        return el("div", {class: "controls"},
                  TH.select("From", "from", options(from), from),
                  TH.select("To", "to", options(to), to));
    };

    const refusal = (lane, from, to) => {
        const tags = lane.releases.map((release) => release.tag);
        const unknown = [from, to].find((tag) => tag !== null && !tags.includes(tag));
        if (unknown !== undefined) {
            return `There are no results of '${unknown}' on ${machine(lane)}: choose another release.`;
        }
        if (tags.length === 1) {
            return `${tags[0]} is the only release measured on ${machine(lane)}: measure another to compare it with.`;
        }
        if (from === to) {
            return `${to} was chosen on both sides: choose two releases.`;
        }
        return from === null
            && `${to} is the oldest release measured on ${machine(lane)}: choose what to compare it with.`;
    };

    // --- the environment

    const packagesOf = (facts) => new Map((facts.packages || []).map((each) => each.split("==")));
    const environment = (lane, from, to) => {
        const [old, now] = [from, to].map((tag) => lane.releases.find((release) => release.tag === tag).facts);
        const unknown = [[from, old], [to, now]].filter(([, facts]) => !Object.keys(facts).length).map(([tag]) => tag);
        if (unknown.length) {
            return el("p", {class: "quiet"}, `The environment of ${unknown.join(" and that of ")} is not recorded.`);
        }
        const moved = Object.entries(V.moved(lane, from, to)).map(([name, values]) => [name, ...values.map(String)]);
        const [before, after] = [packagesOf(old), packagesOf(now)];
        const packages = [...new Set([...before.keys(), ...after.keys()])].sort()
            .filter((name) => before.get(name) !== after.get(name))
            .map((name) => [name, before.get(name) || "not there", after.get(name) || "not there"]);
        const facts = moved.map(([name, was, is]) => `${name} ${was} → ${is}`);
        const plural = packages.length === 1 ? "" : "s";
        const listed = [...facts, packages.length > 0 && `${packages.length} package${plural}`];
        const table = (what, caption, rows) => rows.length > 0 && TH.table({caption, head: [what, from, to], rows});
        if (!moved.length && !packages.length) {
            return el("p", {class: "quiet"}, "The environments are the same but for torch itself.");
        }
        return el("details", {id: "environment"},
            el("summary", {}, `The environments differ in ${listed.filter(Boolean).join(", ")}`),
            table("fact", "Facts of the environment that differ", moved),
            table("package", "Packages that differ", packages));
    };

    // --- what to take along

    /* The address of this comparison for others, as Markdown takes it; empty where the page was opened from a disk. */
    const shared = (from, to) => (location.protocol.startsWith("http")
        ? new URL(TH.link("upgrade.html", {from, to}), location.href).href.replace(/[()]/gu, (one) => ({"(": "%28", ")": "%29"}[one]))
        : "");

    const takeAlong = (lane, from, to, changes) => {
        const name = `torch-history-${from}-${to}-${lane.id}`;
        const command = ["torch-history", "compare", from, to, "--machine", lane.machine.machine,
                         "--lane", lane.environment];
        const save = (ending, type, text) => () =>
            TH.download(`${name}.${ending}`, type, text(lane, from, to, changes));
        const json = (...asked) => `${JSON.stringify(V.json(...asked), null, 1)}\n`;
        return el("section", {class: "take", "aria-label": "Take it along"},
            el("div", {class: "controls"},
               button("copy-markdown", "Copy as Markdown",
                      (event) => TH.copy(TH.answer.markdown(lane, from, to, changes, shared(from, to)), event.currentTarget)),
               button("download-csv", "Download CSV", save("csv", "text/csv", V.csv)),
               button("download-json", "Download JSON", save("json", "application/json", json))),
            el("p", {class: "quiet"}, `All ${changes.length} series, whatever is filtered below. On the command line: `,
               el("code", {}, command.map((word, i) => [i ? " " : "", el("span", {}, word)]))));
    };

    // --- the table

    const collator = new Intl.Collator("en", {numeric: true});
    const ORDERS = {
        verdict: {title: "Verdict", first: "descending", of: (changes) => changes},
        series: {title: "Series", first: "ascending", of: (changes, name) =>
            [...changes].sort((a, b) => collator.compare(name(a), name(b)))},
        ratio: {title: "New / old", first: "descending", of: (changes) =>
            [...changes].sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0))},
    };
    const OTHER = {ascending: "descending", descending: "ascending"};

    const sorted = (changes, sort, name) => {
        const column = sort.replace(/^-/, "");
        const found = (ORDERS[column] || ORDERS.verdict).of(changes, name);
        const turned = sort.startsWith("-") ? [...found].reverse() : found;
        const isLast = ({ratio}) => column === "ratio" && ratio === null;
        return [...turned.filter((change) => !isLast(change)), ...turned.filter(isLast)];
    };

    const header = (column, sort) => {
        const {title, first} = ORDERS[column];
        const now = sort === column ? first : sort === `-${column}` ? OTHER[first] : null;
        const next = sort === column ? `-${column}` : column;
        const sign = {ascending: " ▴", descending: " ▾"}[now] || " ▵";
        return el("th", {scope: "col", role: "columnheader", "aria-sort": now || "none"},
            button(`sort-${column}`, [title, el("span", {"aria-hidden": "true"}, sign)],
                   () => TH.go({sort: next === "verdict" ? null : next}), {class: "sort"}));
    };

    const row = (lane, change, {from, to}) => {
        const series = lane.series[change.series];
        const {benchmark, size, variant} = series;
        const cell = (label, name, ...children) => el("td", {role: "cell", class: name, "data-label": label}, children);
        const quiet = (text) => el("span", {class: "quiet"}, text);
        const interval = intervalWords(change, series);
        const words = ratioWords(change, series);
        const repeats = isTime(series) && change.old !== null && change.new !== null;
        return el("tr", {role: "row"},
            el("th", {scope: "row", role: "rowheader"},
               el("a", {href: TH.link("series.html", {benchmark, size, variant, release: to, base: from})}, TH.name(series))),
            cell("Verdict", "", TH.mark(change.verdict)),
            cell("New / old", "ratio", words && el("span", {}, words), interval && quiet(interval)),
            cell("From → to", "from-to", fromTo(change, series),
                 repeats && quiet(launchesWords(change))),
            cell("Why", "why", because(change, series)));
    };

    let focusOn = null;
    const table = (lane, changes, address, pair) => {
        const sort = address.sort || "verdict";
        const name = (change) => TH.name(lane.series[change.series]);
        const all = sorted(changes, sort, name);
        const shown = address.all ? all : all.slice(0, ROWS_FIRST);
        const plain = (title) => el("th", {scope: "col", role: "columnheader"}, title);
        const more = all.length > shown.length && button("show-all", `Show all ${all.length}`, () => {
            focusOn = shown.length;
            TH.go({all: "1"});
        });
        return [
            el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Series"},
               el("table", {id: "changes", class: "changes", role: "table"},
                  el("caption", {class: "unseen"}, "Series with verdict, ratio and cause"),
                  el("thead", {role: "rowgroup"},
                     el("tr", {role: "row"}, header("series", sort), header("verdict", sort), header("ratio", sort),
                        plain("From → to"), plain("Why"))),
                  el("tbody", {role: "rowgroup"}, shown.map((change) => row(lane, change, pair))))),
            more && el("p", {}, `The first ${shown.length} of ${all.length} series are shown. `, more),
        ];
    };

    const series = (lane, changes, address, pair) => {
        const asked = (address.verdict || "").split(",").filter(Boolean);
        const chosen = asked.filter((verdict) => TH.kind(verdict));
        const strangers = asked.filter((verdict) => !TH.kind(verdict));
        const wanted = (address.search || "").toLowerCase().split(/\s+/).filter(Boolean);
        const text = (change) => {
            const of = lane.series[change.series];
            return `${TH.name(of)} ${TH.shown(change.verdict)} ${because(change, of)}`.toLowerCase();
        };
        const others = changes.filter((change) =>
            ["question", "metric"].every((key) => !address[key] || lane.series[change.series][key] === address[key])
            && (!wanted.length || wanted.every((word) => text(change).includes(word))));
        const shown = others.filter((change) => !chosen.length || chosen.includes(change.verdict));
        const namesOf = (key) => [...new Set(changes.map((change) => lane.series[change.series][key]))].sort();
        const options = (all, key) => [["", all], ...namesOf(key).map((name) => [name, TH.words(name)])];
        const counted = new Map(TH.tally(others));
        const chip = ([verdict]) => {
            const on = chosen.includes(verdict);
            const next = on ? chosen.filter((each) => each !== verdict) : [...chosen, verdict];
            return button(`verdict-${verdict.replace(/\W+/g, "-")}`,
                          [el("strong", {}, `${counted.get(verdict) || 0} `), TH.mark(verdict)],
                          () => TH.go({verdict: next.join(",")}), {"aria-pressed": String(on)});
        };
        const filtered = chosen.length || wanted.length || address.question || address.metric;
        const clear = filtered && button("clear", "Show every series",
                                         () => TH.go({verdict: null, search: null, question: null, metric: null}));
        const part = shown.length === changes.length ? "" : `${shown.length} of `;
        return el("section", {"aria-labelledby": "series-title"},
            el("h2", {id: "series-title"}, "Every series"),
            strangers.length > 0 && el("p", {role: "alert"}, `There is no verdict '${strangers.join("', '")}': choose below.`),
            el("div", {class: "tally", role: "group", "aria-label": "Only these verdicts"},
               TH.tally(changes).map(chip)),
            el("div", {class: "controls"},
               TH.select("Question", "question", options("all questions", "question"), address.question || ""),
               TH.select("Metric", "metric", options("all metrics", "metric"), address.metric || ""),
               TH.search("Series, verdict or cause contains", "search", address.search), clear),
            el("p", {id: "count", class: "quiet", role: "status"},
               shown.length ? `${part}${changes.length} series.`
                   : "No series matches: choose other verdicts, another question or metric, or other words."),
            shown.length > 0 && table(lane, shown, address, pair));
    };

    const {chosen} = TH;

    TH.page({
        title: (lane, address) => {
            const {from, to} = chosen(lane, address);
            return from ? `From ${from} to ${to}` : `Upgrade to ${to}`;
        },
        render: (lane, address, main) => {
            const {from, to} = chosen(lane, address);
            main.append(pickers(lane, from, to));
            const refused = refusal(lane, from, to);
            if (refused) {
                main.append(el("p", {role: "alert"}, refused));
                return;
            }
            const changes = compared(lane, from, to);
            if (!changes.length) {
                main.append(el("h2", {}, `${from} → ${to}: nothing in common`), el("p", {},
                    "No series was measured on both in the same size and version. Measure them together with ",
                    TH.measure(lane, from, to), "."));
                return;
            }
            const changed = TH.tally(changes.filter(({unconfirmed}) => !unconfirmed)).filter(([verdict]) => CHANGED.includes(TH.kind(verdict)))
                .map(TH.counted);
            const isMoved = Object.keys(V.moved(lane, from, to)).length > 0;
            const sentences = V.summary(lane, from, to, changes).slice(1, isMoved ? -1 : undefined);
            main.append(
                el("h2", {id: "headline"},
                   `${from} → ${to}: ${changed.join(", ") || V.unchanged(lane, changes)}.`),
                el("ul", {class: "sentence-list", "aria-label": "How these verdicts were made"},
                   sentences.map((sentence) => el("li", {}, TH.explained(sentence)))),
                environment(lane, from, to),
                takeAlong(lane, from, to, changes),
                series(lane, changes, address, {from, to}));
            if (focusOn !== null) {
                /** @type {NodeListOf<HTMLAnchorElement>} */
                const links = document.querySelectorAll("#changes tbody a");
                const link = links[focusOn];
                focusOn = null;
                if (link) {
                    link.focus({preventScroll: true});
                }
            }
        },
    });
})();
