"use strict";

/* What did one release change, in which environment was it measured, and what could it not run? */
(() => {
    const TH = window.torchHistory;
    const V = TH.verdicts;
    const {el} = TH;

    const MOST = 15;
    const MOST_RELEASES = 60;
    const MOST_SIZES = 4;
    const GROUPS = [["worse", "Worse"], ["better", "Better"], ["changed", "Changed"]];
    const SAID_FIRST = GROUPS.map(([kind]) => kind);
    const FACTS = {
        torch: "PyTorch", libc: "C library", fuses_on_cpu: "fuses on a CPU", allocator: "allocator settings",
        architectures: "GPU architectures of the wheel",
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

    const told = (lane, index, sentence, release) => {
        const {benchmark, size, variant} = lane.series[index];
        const href = TH.link("series.html", {benchmark, size, variant, release});
        return el("li", {}, TH.prose(sentence), " ", el("a", {class: "history-link", href}, "history"));
    };
    const folded = (items) => [
        el("ul", {class: "sentence-list"}, items.slice(0, MOST)),
        items.length > MOST && el("details", {}, el("summary", {}, `${items.length - MOST} more`),
                                  el("ul", {class: "sentence-list"}, items.slice(MOST))),
    ];

    /* The metrics that a case lacks for one reason are said together, as `torch-history compare` does. */
    const byCase = (lane, changes) => {
        const cases = new Map();
        for (const change of changes) {
            const {question, parameters} = lane.series[change.series];
            const key = change.new === null
                ? JSON.stringify([question, parameters, change.verdict, change.reason]) : change.series;
            cases.set(key, [...(cases.get(key) || []), change]);
        }
        return [...cases.values()];
    };
    const ofCase = (lane, changes) => {
        const [first] = changes;
        if (changes.length === 1) {
            return first.sentence;
        }
        const {question, parameters} = lane.series[first.series];
        const metrics = changes.map((change) => TH.words(lane.series[change.series].metric)).join(", ");
        const reason = first.reason.replace(/\.$/, "");
        return `${TH.words(question)} ${parameters.join(" ")}: ${TH.shown(first.verdict)}: ${reason} (${metrics}).`;
    };

    const changed = (lane, before, tag) => {
        const changes = V.compare(lane, before, tag);
        const rest = changes.filter(({kind}) => !SAID_FIRST.includes(kind));
        const groups = GROUPS.map(([kind, title]) => [kind, title, changes.filter((change) => change.kind === kind)])
            .filter(([, , of]) => of.length);
        const href = TH.link("upgrade.html", {from: before, to: tag});
        return section("changed", `Against ${before}`,
            !groups.length && el("p", {}, changes.length ? `${before} → ${tag}: ${V.unchanged(lane, changes)}.`
                : "No series was measured on both in the same size and version."),
            groups.map(([kind, title, of]) => [
                el("h3", {class: kind}, `${title}: ${count(of.length, "series", "series")}`),
                folded(byCase(lane, of).map((together) => told(lane, together[0].series, ofCase(lane, together), tag))),
            ]),
            el("p", {}, tallied(rest), rest.length > 0 && ". ",
               el("a", {href}, `Every series from ${before} to ${tag}`), "."));
    };

    const begun = (lane, tag, happened) => {
        const steps = happened.filter((step) => (step.kind === "drift" ? step.old : step.new) === tag);
        return section("begun", "Steps, excursions and drifts that begin here",
            steps.length ? folded(steps.map((step) => told(lane, step.series, step.sentence, tag)))
                : el("p", {}, TH.explained("No step, excursion or drift begins at this release.")));
    };

    // --- its environment

    const inWords = (name) => {
        const known = TH.contents.constants.why.ENVIRONMENT[name] || "";
        return FACTS[name] || known.replace(/^the (number of )?/, "") || TH.words(name);
    };
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
               then ? `; ${moved} were added, changed or dropped since ${oldTag}` : ""),
            beside("Packages", (name) => name, [tag, whole(now)], [oldTag, whole(then)], names));
    };

    const environment = ({tag, facts}, before) => {
        if (!Object.keys(facts).length) {
            return section("environment", "Its environment", el("p", {}, "What was installed was not recorded."));
        }
        const then = before && Object.keys(before.facts).length ? before.facts : null;
        const names = Object.keys(facts).filter((name) => name !== "packages");
        const oldTag = before && before.tag;
        return section("environment", "Its environment",
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
        const named = (variants) => {
            const most = Math.max(...[...variants.values()].map((sizes) => sizes.size));
            return listed([...variants].map(([variant, sizes]) =>
                sizes.size < most && sizes.size < MOST_SIZES ? `${variant} (${[...sizes].join("; ")})` : variant));
        };
        const list = (reasons) => el("ul", {class: "sentence-list reasons"}, [...reasons].map(([reason, whats]) =>
            el("li", {}, TH.prose(reason),
               el("ul", {}, [...whats].map(([what, variants]) => el("li", {}, `${what}: ${named(variants)}`))))));
        return section("missing", "What could not run",
            cases.size ? list(cases) : el("p", {}, "Everything ran."),
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

    const tallyOf = (lane, tag) => {
        const before = V.adjacent(lane, tag);
        const changes = before === null ? [] : V.compare(lane, before, tag);
        const first = changes.filter(({kind}) => SAID_FIRST.includes(kind));
        return before === null ? "the oldest measured here" : first.length ? tallied(first)
            : changes.length ? V.unchanged(lane, changes) : "nothing in common with the release before";
    };

    /* A release's tally is made when its row comes into view. */
    const everyRelease = (lane, address) => {
        const tagOf = new Map();
        const fill = ({target}) => {
            seen.unobserve(target);
            target.replaceChildren(el("span", {}, tallyOf(lane, tagOf.get(target))));
        };
        const seen = new IntersectionObserver((entries) =>
            entries.filter((entry) => entry.isIntersecting).forEach(fill));
        const newestFirst = [...lane.releases].reverse();
        const rows = newestFirst.slice(0, address.all ? Infinity : MOST_RELEASES).map((release) => {
            const cell = el("span", {class: "lazy"}, "…");
            tagOf.set(cell, release.tag);
            seen.observe(cell);
            const {tag} = release;
            return [el("a", {href: TH.link("release.html", {release: tag})}, tag), dated(release), cell];
        });
        return section("every", "All releases measured here",
            newestFirst.length > MOST_RELEASES
                && TH.toggle(`all ${newestFirst.length}, not the newest ${MOST_RELEASES} alone`, "all", address.all),
            TH.table({caption: "All releases", head: ["Release", "Date", "Against the one before"], rows}));
    };

    const notMeasured = (lane, tag) => {
        return el("p", {role: "alert"}, `${tag} was not measured on ${TH.laneWords(lane)}: choose another release, `
                  + "another machine at the top, or measure it with ",
                  TH.measure(lane, tag), ".");
    };

    const render = (lane, address, main, steps) => {
        const tags = lane.releases.map(({tag}) => tag);
        const asked = address.release;
        if (asked && !tags.includes(asked)) {
            main.append(steer(tags, null), notMeasured(lane, asked));
            return;
        }
        const position = asked ? tags.indexOf(asked) : tags.length - 1;
        const release = lane.releases[position];
        const {tag} = release;
        const before = V.adjacent(lane, tag);
        main.append(el("div", {},
            steer(tags, position),
            el("h2", {class: "release-name"}, tag),
            el("p", {}, `Released on ${dated(release)}. `,
               release.yanked && el("strong", {}, `It was yanked from the package index: ${release.yanked}. `),
               asked ? el("a", {href: TH.link("release.html")}, "All releases")
                   : "The newest release measured here; all others are listed below."),
            effort(lane, position),
            before !== null ? changed(lane, before, tag)
                : el("p", {}, `${tag} is the oldest release measured here: there is none to compare it with.`),
            begun(lane, tag, steps),
            missing(lane, position),
            environment(release, before === null ? null : lane.releases[tags.indexOf(before)]),
            !asked && everyRelease(lane, address)));
    };

    TH.page({title: (lane, {release}) => `What ${release || lane.releases.at(-1).tag} changed`, needs: (lane) => TH.steps(lane), render});
})();
