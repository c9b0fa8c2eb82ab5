"use strict";

/* What did one release change, in which environment was it measured, and what could it not run? */
(() => {
    const TH = window.torchHistory;
    const {el} = TH;

    /* What a wheel says of itself; the rest are packages. */
    const MAIN_FACTS = ["download, with all packages", "installed, with all packages", "torch itself, installed", "CUDA",
                        "C++11 ABI", "least glibc", "commit"];
    const FACTS = {
        torch: "PyTorch", libc: "C library", fuses_on_cpu: "fuses on a CPU", allocator: "allocator settings",
        architectures: "GPU architectures of the wheel", libraries: "who answers products",
    };

    const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
    const listed = (words) =>
        words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
    const dated = ({date, estimated}) => `${date}${estimated ? " (estimated)" : ""}`;
    const tallied = (changes) => TH.tally(changes).map(([verdict, many], i) =>
        [i > 0 && ", ", `${many} `, TH.mark(verdict)]);
    const section = (id, title, ...children) =>
        el("section", {"aria-labelledby": id}, el("h2", {id}, title), children);

    // --- what it changed

    const changed = (lane, pair) => section("changed", `Against ${pair.old}`,
        el("p", {class: "summary"}, pair.said.typical && ["Typically ", el("strong", {}, pair.said.typical), ". "], "Peak memory: ", TH.prose(pair.said.memory), ". "),
        TH.findings(lane, pair),
        el("p", {}, tallied(pair.rows), ". ", el("a", {href: TH.link("index.html", {from: pair.old, to: pair.new})}, `Every case from ${pair.old} to ${pair.new}`), "."));

    const told = (lane, index, sentence, release) => {
        const href = TH.historyOf(lane.series[index], {from: undefined, to: undefined}, {release});
        return el("li", {}, TH.prose(sentence), " ", el("a", {class: "history-link", href}, "history"));
    };
    const begun = (lane, tag, happened) => {
        const steps = happened.filter((step) => (step.kind === "drift" ? step.old : step.new) === tag);
        return section("begun", "Steps, excursions and drifts that begin here",
            steps.length ? el("details", {}, el("summary", {}, `${steps.length}, series by series`),
                el("ul", {class: "sentence-list"}, steps.map((step) => told(lane, step.series, step.sentence, tag))))
                : el("p", {}, TH.explained("No step, excursion or drift begins at this release.")));
    };

    // --- its environment

    const inWords = (name) => FACTS[name] || TH.words(name);
    const value = (fact) => {
        if (fact === null || fact === undefined) {
            return "not known";
        }
        if (typeof fact === "boolean") {
            return fact ? "yes" : "no";
        }
        if (Array.isArray(fact)) {
            return fact.join(", ") || "none";
        }
        const settings = typeof fact === "object" && Object.entries(fact).map((pair) => pair.join("="));
        return settings ? settings.join(", ") || "none set" : String(fact);
    };

    /* A table of what `now` holds, beside it what `then` held; `then` is null where that is not known. */
    const beside = (caption, what, [tag, now], [oldTag, then], names) => {
        const rows = names.map((name) => {
            const [here, before] = [now, then || now].map((facts) => value(facts[name]));
            const differs = here !== before;
            return [what(name), {text: here, class: differs ? "differs" : null},
                    ...(then ? [{text: before, class: differs ? null : "quiet"}] : [])];
        });
        const table = TH.table({caption, head: ["What", tag, ...(then ? [oldTag] : [])], rows});
        table.classList.add("facts");
        return table;
    };

    const packages = (tag, list, oldTag, oldList) => {
        const versions = (of) => Object.fromEntries(of.map((each) => each.split("==")));
        const [now, then] = [versions(list), oldList ? versions(oldList) : null];
        const names = [...new Set([...Object.keys(now), ...Object.keys(then || {})])].sort();
        const moved = then ? names.filter((name) => now[name] !== then[name]).length : 0;
        const whole = (of) => of && Object.fromEntries(names.map((name) => [name, of[name] || "none"]));
        return el("details", {id: "packages"},
            el("summary", {}, count(list.length, "package"),
               then ? `; ${moved} added, changed or dropped since ${oldTag}` : ""),
            beside("Packages", (name) => name, [tag, whole(now)], [oldTag, whole(then)], names));
    };

    const environment = ({tag, facts}, before) => {
        if (!Object.keys(facts).length) {
            return el("p", {}, "What was installed was not recorded.");
        }
        const then = before && Object.keys(before.facts).length ? before.facts : null;
        const names = Object.keys(facts).filter((name) => name !== "packages");
        const oldTag = before && before.tag;
        return el("div", {},
            beside(`Environment of ${tag}`, inWords, [tag, facts], [oldTag, then], names),
            facts.packages && packages(tag, facts.packages, oldTag, then && then.packages));
    };

    // --- what could not run

    /* Reason -> what -> variant -> sizes: of cases without any number, and of numbers that a case lacks which ran. */
    const withoutNumber = (lane, position) => {
        const measured = lane.patterns.map((pattern) => pattern.some(([release]) => release === position));
        const caseOf = ({question, parameters}) => JSON.stringify([question, parameters]);
        const ran = new Set(lane.series.filter((series) => measured[series.pattern]).map(caseOf));
        const found = {cases: new Map(), numbers: new Map()};
        const inside = (map, key, empty) => map.get(key) || map.set(key, empty).get(key);
        for (const series of lane.series) {
            const missing = series.missing.find(([release]) => release === position);
            if (missing) {
                const [, reason, failed] = missing;
                const isNumber = ran.has(caseOf(series));
                const said = `${failed === 1 ? "failed: " : ""}${lane.reasons[reason]}`;
                const what = TH.words(isNumber ? `${series.question} ${series.metric}` : series.question);
                const whats = inside(isNumber ? found.numbers : found.cases, said, new Map());
                inside(inside(whats, what, new Map()), series.variant, new Set()).add(series.size);
            }
        }
        return found;
    };

    const missing = (lane, position) => {
        const {cases, numbers} = withoutNumber(lane, position);
        const named = (what, variants) => listed([...variants].map(([variant, sizes]) => {
            const every = new Set(lane.series.filter((series) => series.variant === variant
                && [series.question, `${series.question} ${series.metric}`].map(TH.words).includes(what)).map(({size}) => size));
            return sizes.size < every.size ? `${variant} (${[...sizes].join("; ")})` : variant;
        }));
        const list = (reasons) => el("ul", {class: "sentence-list reasons"}, [...reasons].map(([reason, whats]) =>
            el("li", {}, TH.prose(reason),
               el("ul", {}, [...whats].map(([what, variants]) => el("li", {}, `${what}: ${named(what, variants)}`))))));
        return el("div", {}, cases.size ? list(cases) : el("p", {}, "Everything ran."),
            numbers.size > 0 && el("details", {}, el("summary", {}, "Numbers that are missing from cases that ran"),
                                   list(numbers)));
    };

    const effort = (lane, position) => {
        const blocks = new Set();
        const launches = lane.patterns.map((pattern) => {
            const here = pattern.filter(([release]) => release === position);
            here.forEach(([, block]) => blocks.add(block));
            return here.length;
        });
        const numbers = lane.series.map((series) => launches[series.pattern]).filter(Boolean);
        const sessions = [...new Set([...blocks].map((block) => lane.rounds[block][0]))].sort();
        const dates = sessions.map((session) => /^(\d{4})(\d\d)(\d\d)T/.exec(session)).filter(Boolean)
            .map((parts) => parts.slice(1).join("-"));
        const days = [...new Set(dates)];
        const when = { 0: "", 1: ` on ${days[0]}` }[days.length] ?? ` from ${days[0]} to ${days.at(-1)}`;
        const total = numbers.reduce((sum, many) => sum + many, 0);
        return el("p", {}, `Measured on ${TH.laneWords(lane)}: ${count(total, "number")} of `
            + `${count(numbers.length, "series", "series")} in ${count(blocks.size, "round")} of `
            + `${count(sessions.length, "session")}${when}.`);
    };

    // --- the page

    const steer = (tags, position) => {
        const isKnown = position !== null;
        const to = (release) => TH.link("release.html", {release});
        const step = (by, id, rel, words) => isKnown && tags[position + by]
            && el("a", {href: to(tags[position + by]), id, rel}, words(tags[position + by]));
        const options = [...(isKnown ? [] : [["", "choose one"]]), ...tags.map((tag) => [tag, tag]).reverse()];
        return el("div", {class: "controls steer"},
            step(-1, "previous", "prev", (tag) => `← ${tag}`),
            TH.select("Release", "release", options, isKnown ? tags[position] : ""),
            step(1, "next", "next", (tag) => `${tag} →`));
    };

    const everyRelease = (lane) => el("details", {id: "every"}, el("summary", {}, el("h2", {}, lane.releases.length === 1 ? "The release measured here" : `All ${lane.releases.length} releases measured here`)),
        TH.table({caption: "All releases", head: ["Release", "Date", "Against the one before"], rows: [...lane.releases.entries()].reverse().map(([i, release]) => {
            const {tally} = lane.changes[i] || {tally: {}};
            const changes = TH.inOrder(Object.entries(tally)).filter(([verdict]) => !["SAME", "NEVER RAN"].includes(verdict));
            return [el("a", {href: TH.link("release.html", {release: release.tag})}, release.tag), dated(release),
                    changes.map(([verdict, many], at) => [at > 0 && ", ", `${many} `, TH.mark(verdict)])];
        })}));

    const facts = (wheel, old, isShown) => el("ul", {class: "sentence-list"}, Object.entries(wheel.told).filter(([name]) => isShown(name))
        .map(([name, said]) => el("li", {}, `${name}: ${said}`, old && old.told[name] !== said && ` (before: ${old.told[name] || "none"})`)));
    const brought = (tag, wheel, before, old) => section("wheel", "What its wheel brings",
        el("p", {}, old && TH.common.lost(old.architectures, wheel.architectures, before, tag)),
        facts(wheel, old, (name) => MAIN_FACTS.includes(name)),
        el("details", {}, el("summary", {}, "Its packages"), facts(wheel, old, (name) => !MAIN_FACTS.includes(name))),
        el("p", {}, el("a", {href: TH.link("facts.html", {to: tag, from: before})}, "The wheels of all releases, in bytes"), "."));

    const notMeasured = (lane, tag) => {
        return el("p", {role: "alert"}, `${tag} was not measured on ${TH.laneWords(lane)}: choose another release or `
                  + "another machine at the top", TH.measure(lane, ", or measure it with ", tag), ".");
    };

    const chosen = (lane, {release, to}) => TH.tagOf(lane.releases.map(({tag}) => tag), release || to || lane.releases.at(-1).tag);
    const beforeOf = (lane, tag) => (lane.releases[lane.releases.findIndex((each) => each.tag === tag) - 1] || {tag: null}).tag;

    const render = (lane, address, main, {steps, pair, wheels}) => {
        const tags = lane.releases.map(({tag}) => tag);
        const tag = chosen(lane, address);
        const position = tags.indexOf(tag);
        if (position < 0) {
            main.append(steer(tags, null), notMeasured(lane, tag));
            return;
        }
        const release = lane.releases[position];
        const before = beforeOf(lane, tag);
        const details = (id, words, make) => TH.lazy({id}, el("h2", {}, words), make);
        main.append(el("div", {},
            steer(tags, position),
            el("h2", {class: "release-name"}, tag),
            el("p", {}, `Released on ${dated(release)}. `,
               release.yanked && el("strong", {}, `It was yanked from the package index: ${release.yanked}. `)),
            pair ? changed(lane, pair) : el("p", {}, `${tag} is the oldest release measured here: there is none to compare it with.`),
            begun(lane, tag, steps),
            wheels[tag] && brought(tag, wheels[tag], before, wheels[before]),
            details("missing", "What could not run", async () => missing(await TH.measured(lane), position)),
            details("environment", "Its environment, and how it was measured", async () => [effort(await TH.measured(lane), position),
                environment(release, before === null ? null : lane.releases[tags.indexOf(before)])]),
            everyRelease(lane)));
    };

    const needs = async (lane, address) => {
        const tag = chosen(lane, address);
        const before = beforeOf(lane, tag);
        const known = [before, tag].filter((each) => TH.contents.wheels.includes(each));
        const [steps, pair, ...wheels] = await Promise.all([TH.steps(lane), before === null ? null : TH.pair(lane, before, tag), ...known.map((each) => TH.file(`wheels-${each}`))]);
        return {steps, pair, wheels: Object.fromEntries(known.map((each, i) => [each, wheels[i]]))};
    };
    TH.page({title: (lane, address) => `What ${chosen(lane, address)} changed`, needs, render});
})();
