"use strict";

/* How did one benchmark move over all releases, variant by variant, and when did it jump? */
(() => {
    const TH = window.torchHistory;
    const H = TH.history;
    const {el} = TH;

    const MOST_VARIANTS = 8;
    const MOST_COLUMNS = 60;
    const MOST_STEPS = 8;
    const MOST_CHANGES = 3;
    const FIRST_METRICS = ["time", "peak_memory"];

    const sentences = (said, tag = "ul") => said.length > 0
        && el(tag, {class: "sentence-list"}, said.map((sentence) => el("li", {}, TH.prose(sentence))));

    // --- what there is to choose from

    const rank = (metric) => FIRST_METRICS.includes(metric) ? FIRST_METRICS.indexOf(metric) : FIRST_METRICS.length;

    /* [{question, metrics: [{metric, benchmark, sizes}]}], the sizes that most releases have first. */
    const catalogue = (lane) => {
        const releases = lane.patterns.map((launches) => new Set(launches.map(([release]) => release)).size);
        const questions = new Map();
        for (const {question, metric, benchmark, size, pattern} of lane.series) {
            const metrics = questions.get(question) || new Map();
            const entry = metrics.get(benchmark) || {metric, benchmark, most: new Map()};
            entry.most.set(size, Math.max(releases[pattern], entry.most.get(size) || 0));
            questions.set(question, metrics.set(benchmark, entry));
        }
        const listed = ({metric, benchmark, most}) =>
            ({metric, benchmark, sizes: [...most.keys()].sort((a, b) => most.get(b) - most.get(a))});
        return [...questions].map(([question, metrics]) => ({
            question, metrics: Array.from(metrics.values(), listed).sort((a, b) => rank(a.metric) - rank(b.metric)),
        }));
    };

    const lookUp = (lane, benchmark) => {
        for (const {question, metrics} of catalogue(lane)) {
            const found = metrics.find((entry) => entry.benchmark === benchmark);
            if (found) {
                return {...found, question, metrics};
            }
        }
        return null;
    };

    const sizeOf = (found, asked) => found.sizes.includes(asked) ? asked : found.sizes[0];
    const nameOf = ({question, metric}, size) =>
        [`${TH.words(question)}: ${TH.words(metric)}`, size].filter(Boolean).join(", ");

    // --- controls

    const choose = (label, id, options, value, change) => el("label", {}, el("span", {}, label), el("select", {
        id: `choose-${id}`, name: id, change: (event) => change(event.target.value),
    }, options.map(([key, text]) => el("option", {value: key, selected: key === value}, text))));

    const pickers = (lane, found, size) => {
        const questions = catalogue(lane);
        const open = (question, entry) => TH.go({
            benchmark: entry.benchmark, size: sizeOf(entry, size),
            ...(question === found.question ? {} : {variant: null, variants: null, all: null}),
        });
        const ask = (question) => {
            const {metrics} = questions.find((each) => each.question === question);
            open(question, metrics.find(({metric}) => metric === found.metric) || metrics[0]);
        };
        const measure = (metric) => open(found.question, found.metrics.find((each) => each.metric === metric));
        const named = (names) => names.map((name) => [name, TH.words(name)]);
        return el("div", {class: "controls"},
            choose("Question", "question", named(questions.map(({question}) => question)), found.question, ask),
            choose("Metric", "metric", named(found.metrics.map(({metric}) => metric)), found.metric, measure),
            found.sizes.some(Boolean)
                && TH.select("Size", "size", found.sizes.map((each) => [each, each || "none"]), size));
    };

    const views = (limit, {x, y, relative, times, unit, release, exact}) => el("div", {class: "controls"},
        TH.select("Releases", "x", [["order", "in their order"], ["date", "by date"]], x),
        TH.select("Scale", "y", [["log", "logarithmic"], ["linear", "linear, from zero"]], y),
        TH.select("Relative to", "relative", [
            ["", "nothing"],
            ["best", `the ${unit === "seconds" ? "fastest" : "least"} variant of each release`],
            ["start", release ? `${release}, each variant's own` : "the first release, each variant's own"],
            ...(limit ? [["limit", limit.words]] : []),
        ], relative),
        unit === "seconds"
            && TH.select("Times", "times", [["", "comparable between sessions"], ["raw", "as measured"]], times),
        unit === "bytes" && TH.toggle("Exact bytes in the table", "exact", exact));

    // --- variants: the one of the address and those that something happened to come first

    const decoded = (name) => {
        try {
            return decodeURIComponent(name);
        } catch {
            return name;  // someone cut the address short
        }
    };
    const parse = (names) => names.split(",").filter(Boolean).map(decoded);
    const write = (names) => names.map(encodeURIComponent).join(",") || ",";

    const mostInteresting = (steps, all, variant) => {
        const happened = new Map();
        steps.forEach(({series}) => happened.set(series, (happened.get(series) || 0) + 1));
        const numbers = ({cells}) => cells.filter((cell) => cell && cell.numbers).length;
        const ordered = [...all].sort((a, b) => Number(b.variant === variant) - Number(a.variant === variant)
            || (happened.get(b.index) || 0) - (happened.get(a.index) || 0) || numbers(b) - numbers(a));
        const best = new Set(ordered.slice(0, MOST_VARIANTS));
        return all.filter((member) => best.has(member));
    };

    /* Variants that are shown together at first have no colour in common, whatever is chosen later. */
    const slotsOf = (lane, steps, benchmark, size) => {
        const all = H.members(lane, benchmark, size);
        const first = mostInteresting(steps, all);
        const order = [...first, ...all.filter((member) => !first.includes(member))];
        return new Map(order.map(({variant}, slot) => [variant, slot]));
    };

    const shownOf = (steps, all, address) => {
        if (address.all) {
            return all;
        }
        const names = parse(address.variants || "");
        const asked = all.filter(({variant}) => names.includes(variant));
        const isEmptied = address.variants && !names.length;
        return asked.length || isEmptied ? asked : mostInteresting(steps, all, address.variant);
    };

    const chips = (all, shown) => el("div", {class: "chips", role: "group", "aria-label": "Variants"},
        all.map((member, i) => {
            const isOn = shown.includes(member);
            const then = all.filter((each) => each === member ? !isOn : shown.includes(each));
            return el("button", {
                type: "button", id: `variant-${i}`, "aria-pressed": String(isOn),
                click: () => TH.go({variants: write(then.map(({variant}) => variant)), all: null}),
            }, H.swatch(member.slot), member.variant || "the only one");
        }),
        all.length > MOST_VARIANTS && TH.toggle(`all ${all.length} variants`, "all", shown.length === all.length));

    const meanings = (all) => {
        const known = all.map((member) => ({...member, means: TH.meaning(member)})).filter(({means}) => means);
        return known.length > 0 && el("details", {}, el("summary", {}, "What the variants do"),
            el("dl", {}, known.map(({variant, means}) => [el("dt", {}, el("code", {}, variant)), el("dd", {}, TH.prose(means))])));
    };

    // --- sentences

    /* What a release changed, the variant of the address first. */
    const released = (lane, address, found, shown, pair) => {
        const {release, variant, variants} = address;
        const none = TH.link("series.html", {benchmark: address.benchmark, size: address.size, variant, variants});
        const box = (title, links, ...children) => el("section", {class: "panel told", "aria-labelledby": "told"},
            el("h2", {id: "told"}, title), ...children,
            el("p", {}, [...links, [none, "Mark no release"]].map(([href, words], i) =>
                [i > 0 && " · ", el("a", {href}, words)])));
        const tags = lane.releases.map(({tag}) => tag);
        if (!tags.includes(release)) {
            return box(release, [], el("p", {}, `${release} was not measured on ${TH.laneWords(lane)}: choose another `
                                       + "release", TH.measure(lane, ", or measure it with ", release), "."));
        }
        if (!pair) {
            return box(release, [], el("p", {}, `${release} is the oldest release measured here: there is none to `
                                       + "compare it with."));
        }
        const {old: before} = pair;
        const order = [...shown].sort((a, b) => Number(b.variant === variant) - Number(a.variant === variant));
        const said = order.map(({index}) => pair.byPlace.get(index)).filter(Boolean).map((row) => el("li", {}, TH.mark(row.verdict), " ",
            TH.prose(TH.inCode(row.series)), row.ratio > 0 && `: ${TH.ratioWords(row, row.series.unit)}`,
            `, ${TH.human(row.old, row.series.unit) || "no number"} → ${TH.human(row.new, row.series.unit) || "no number"}`,
            (row.why || row.reason) && `, ${row.why || row.reason}`, "."));
        const most = order.some((member) => member.variant === variant) ? 1 : MOST_CHANGES;
        const upgrade = {from: before, to: release, question: found.question};
        const [first] = order;
        const [, instead] = (first && pair.instead.find(([place]) => place === first.index)) || [];
        const list = (some) => el("ul", {class: "sentence-list"}, some);
        return box(
            `${release} against ${before}`,
            [[TH.link("release.html", {release}), `All that ${release} changed`],
             [TH.link("index.html", upgrade), `Upgrade from ${before} to ${release}`],
             [`https://github.com/pytorch/pytorch/compare/${before}...${release}`, "What PyTorch changed between them"]],
            said.length ? list(said.slice(0, most)) : el("p", {}, "Exact numbers, the same on both, or not measured on both."),
            instead && el("p", {class: "instead"}, el("strong", {}, `What to do instead of ${first.variant}: `), TH.prose(instead)),
            said.length > most && el("details", {},
                el("summary", {}, said.length - most === 1 ? "1 more variant" : `${said.length - most} more variants`), list(said.slice(most))));
    };

    /* What happened to the variants shown, that of the address first, each newest first. */
    const happenedTo = (happened, shown, {variant}) => {
        const variants = new Map(shown.map((member) => [member.index, member.variant]));
        const isOther = ({series}) => Number(variants.get(series) !== variant);
        return happened.filter(({series}) => variants.has(series)).sort((a, b) => isOther(a) - isOther(b));
    };

    /* One mark per release, with the numbers that its steps have in the list. */
    const marks = (steps) => {
        const numbersOf = new Map();
        steps.forEach((step, i) => numbersOf.set(step.new, [...(numbersOf.get(step.new) || []), i + 1]));
        return [...numbersOf].map(([tag, numbers]) => ({
            tag, numbers,
            sentence: numbers.map((number) => steps[number - 1].sentence).join("\n"),
        }));
    };

    /* What is said of a whole series is told beside the newest of its steps alone. */
    const toldOnce = (steps) => {
        const told = new Set();
        return steps.map(({series, where, own, net, sentence}) => {
            const whole = `${series} ${net}`;
            const isTold = told.has(whole);
            told.add(whole);
            return isTold ? `${where}: ${own}` : sentence;
        });
    };
    /* The largest of what happened, in the order of time. */
    const largest = (steps) => {
        const size = ({ratio}) => (ratio > 0 ? Math.abs(Math.log(ratio)) : Infinity);
        const first = [...steps].sort((one, other) => size(other) - size(one)).slice(0, MOST_STEPS);
        return steps.filter((step) => first.includes(step));
    };
    const stepList = (steps, numbered, address) => {
        if (!steps.length) {
            return el("p", {}, TH.explained("No step, excursion or drift was detected in these variants."));
        }
        const rest = steps.filter((step) => !numbered.includes(step));
        return [
            el("p", {}, rest.length ? `The ${numbered.length} largest of ${steps.length} events` : "What happened", ", newest first; the chart has the numbers at its top:"),
            sentences(toldOnce(numbered), "ol"),
            rest.length > 0 && el("details", {}, el("summary", {}, rest.length === 1 ? "1 smaller one" : `${rest.length} smaller ones`), sentences(toldOnce(rest)),
                el("p", {}, el("a", {href: TH.link("series.html", {...address, events: "all"})}, "Number them all in the chart"))),
        ];
    };

    // --- asv's page of the same, in the form of its own addresses

    const asPython = (text) =>
        text.includes("'") && !text.includes("\"") ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`;
    const asvs = (lane, shown) => {
        const {benchmark, parameters} = shown[0].series;
        const variants = shown.filter(({series}) => series.parameters.length).map(({series}) => series.parameters[0]);
        const values = [
            ["machine", lane.machine.machine],
            ...variants.map((variant) => ["p-variant", asPython(variant)]),
            ...(parameters.length === 2 ? [["p-size", asPython(parameters[1])]] : []),
        ];
        const query = values.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
        return el("a", {href: `asv/index.html#${encodeURIComponent(benchmark)}?${query}`}, "asv's page of it");
    };

    // --- the code, which is loaded when it is asked for

    const install = (release) => {
        const {tag, facts: {numpy}} = release;
        return `pip install torch==${tag.replace(/^v/u, "")}${numpy ? " numpy==" + numpy : ""}`;
    };

    /* What the suite measured, for a reader to compare the script's numbers with. */
    const numbersOf = (lane, {series, change, base, release}) => {
        const how = TH.varies(series) ? " by the suite, the median of its launches. " : " by the suite. ";
        const tell = (tag, value) => el("li", {}, `${tag}: `, el("strong", {}, TH.human(value, series.unit)), how,
            el("code", {}, install(lane.releases.find((each) => each.tag === tag))));
        return change && change.old !== null && change.new !== null
            && el("ul", {class: "numbers"}, tell(base, change.old), tell(release, change.new));
    };
    const printed = ({unit}) => `It prints one number: ${unit === "seconds" ? "seconds of a call" : unit || "a count"}.`;

    const scriptOf = async (name, benchmark, size, beside) => {
        const {scripts} = await TH.file(name);
        const found = scripts.find((each) => each.benchmark === benchmark && each.size === size);
        return !found || !found.text ? el("p", {}, `There is no script. ${found ? found.why : "This size has none."}`) : [
            el("div", {}, beside),
            el("p", {}, el("button", {type: "button", click: (event) => TH.copy(found.text, event.currentTarget)},
                           "Copy the script")),
            el("pre", {class: "scroll", tabindex: "0", role: "region", "aria-label": "The script"},
               el("code", {}, found.text)),
        ];
    };

    const namedCode = (shown, {question}) => shown.map((member) => [member, `code-${question}-${member.variant}`])
        .filter(([, name]) => TH.contents.code.includes(name));

    /* The address with its releases as tags, also where somebody wrote 2.13.0. */
    const tagged = (lane, address) => {
        const tags = lane.releases.map(({tag}) => tag);
        const [release, base] = [address.release, address.base].map((text) => text && TH.tagOf(tags, text));
        return {...address, release, base};
    };

    /* The two releases that a script's numbers stand beside: those of the address, else the newest and the one before. */
    const pairOf = (lane, {release, base}) => {
        const tags = lane.releases.map(({tag}) => tag);
        const now = tags.includes(release) ? release : tags.at(-1);
        return [tags.includes(base) && tags.indexOf(base) < tags.indexOf(now) ? base : tags[tags.indexOf(now) - 1] || null, now];
    };

    const codeOf = (lane, shown, found, benchmark, size, pair) => {
        const [base, release] = pair ? [pair.old, pair.new] : [null, null];
        const named = namedCode(shown, found);
        const one = ([{variant, index}, name]) => {
            const series = lane.series[index];
            const beside = [el("p", {}, printed(series)), numbersOf(lane, {series, change: pair && pair.byPlace.get(index), base, release}),
                            confirmations(lane, series)];
            return TH.lazy({class: "code", "data-variant": variant}, variant, () => scriptOf(name, benchmark, size, beside));
        };
        return named.length > 0 && el("section", {"aria-labelledby": "code"}, el("h2", {id: "code"}, "The code"),
            el("p", {}, "Each script is plain PyTorch in one file, made from what the suite measures now. "
               + "Run it with either release on a CPU: it prints one number and its unit."), named.map(one));
    };

    const openScript = (variant) => {
        /** @type {NodeListOf<HTMLDetailsElement>} */
        const all = document.querySelectorAll("details.code");
        const details = [...all].find(({dataset}) => dataset.variant === variant);
        if (details) {
            details.open = true;
            details.querySelector("summary").focus();
            details.scrollIntoView({behavior: "instant"});
        }
    };
    /* Leads to the script of the variant that the address names, and opens it. */
    const reproduce = (shown, found, {variant}) => {
        const named = namedCode(shown, found).filter(([, name]) => TH.contents.scripted.includes(name));
        if (!named.length) {
            return null;
        }
        const [{variant: first}] = named.find(([member]) => member.variant === variant) || named[0];
        const open = (event) => {
            event.preventDefault();
            openScript(first);
        };
        return el("p", {}, el("a", {id: "reproduce", href: "#code", click: open}, `Reproduce ${first}: a script, and what to install`));
    };

    // --- the evidence of causes

    /* What `torch-history explain` found of a series between any two releases. */
    const evidenceOf = (lane, {benchmark, parameters}) => (lane.evidence || []).filter((known) =>
        known.benchmark === benchmark && known.parameters.map((one) => one.replace(/^'+|'+$/gu, "")).join("\n") === parameters.join("\n"));
    const gave = (lane, series, {reproduced: [old, now], old: from, new: to}) =>
        `${TH.human(old, series.unit)} on ${from} and ${TH.human(now, series.unit)} on ${to}`;
    const confirmations = (lane, series) => {
        const confirmed = evidenceOf(lane, series).filter(({confirmed: isConfirmed}) => isConfirmed);
        return confirmed.length > 0 && el("ul", {class: "confirmed"}, confirmed.map((known) => el("li", {},
            `Confirmed apart from the suite${known.seen_on ? " on " + known.seen_on : ""}: such a script gave `
            + `${gave(lane, series, known)}.`)));
    };
    const evidence = (lane, shown) => {
        const known = shown.flatMap(({variant, index}) =>
            evidenceOf(lane, lane.series[index]).map((one) => ({variant, series: lane.series[index], one})));
        return known.length > 0 && el("section", {"aria-labelledby": "evidence"}, el("h2", {id: "evidence"}, "Evidence of causes"),
            el("p", {}, "Found by ", el("code", {}, "torch-history explain"), ", which measures both releases again and switches parts off. "
                + "CAUSE and PART stand where that made the difference. A profile says where the time goes; what changed in the code stands with the events above."),
            el("ul", {class: "sentence-list"}, known.map(({variant, series, one}) => el("li", {},
                `${variant}, ${one.old} to ${one.new}: ${one.by_lever ? one.verdict : one.verdict === "NOT THERE" ? "measured again" : "by a profile"}, ${one.words}.`,
                one.reproduced && ` A script apart from the suite gave ${gave(lane, series, one)}`
                    + (one.confirmed ? ", which confirms it." : ", which does not confirm it.")))));
    };

    // --- a lane's part of the page

    /** @param {any} lane @param {any} options */
    const part = (lane, {all, shown, happened, view, address, name, isOther}) => {
        const measured = lane.releases.map(({tag}) => tag).filter((_, i) => shown.some(({cells}) => cells[i]));
        if (!shown.length) {
            return el("p", {}, "No variant is chosen: choose at least one above.");
        }
        if (!measured.length) {
            return el("p", {}, "These variants were not measured here.");
        }
        const steps = happenedTo(happened, shown, address);
        const numbered = address.events === "all" ? steps : largest(steps);
        const chosen = address.release;
        const many = shown.length === 1 ? "1 variant" : `${shown.length} variants`;
        const span = measured.length === 1 ? `on ${measured[0]}` : `from ${measured[0]} to ${measured.at(-1)}`;
        const where = `on ${TH.laneWords(lane)}`;
        const {nodes, hidden} = H.table(lane, all, shown, {
            caption: `${name} by variant and release, ${where}`, relative: view.relative, chosen, isExact: Boolean(address.exact),
            most: address.columns ? Infinity : MOST_COLUMNS,
            headOf: (tag) => el("a", {href: TH.link("series.html", {...address, lane: lane.id, release: tag})}, tag),
        });
        const label = `${name} by release, ${many} ${span}, ${where}. The same numbers are in the table below.`;
        const everyColumn = `all ${measured.length} releases, not the newest ${MOST_COLUMNS} alone`;
        const older = measured.length > MOST_COLUMNS && (isOther
            ? hidden > 0 && el("p", {class: "quiet"}, hidden === 1 ? "One older release is not shown." : `${hidden} older releases are not shown.`)
            : TH.toggle(everyColumn, "columns", address.columns));
        return [
            H.figure(lane, all, shown, {...view, isRaw: view.times === "raw", steps: marks(numbered), chosen, label}),
            isOther && H.legend(shown),
            stepList(steps, numbered, address),
            isOther ? el("details", {}, el("summary", {}, "The numbers as a table"), nodes, older) : [nodes, older],
            el("p", {}, asvs(lane, shown)),
        ];
    };

    const other = async ({id, words}, {benchmark, size, slots, hidden, ...common}) => {
        const lane = await TH.measured(await TH.lane(id));
        const happened = await TH.steps(lane, [benchmark]);
        const {view} = common;
        const all = H.members(lane, benchmark, size, slots, view.times === "raw");
        const shown = all.filter(({variant}) => !hidden.has(variant));
        const relative = view.relative === "limit" && !H.limitOf(lane, benchmark, size) ? "" : view.relative;
        const content = () => part(lane, {...common, all, shown, happened, view: {...view, relative}, isOther: true});
        return all.length ? content() : el("p", {}, `Not measured on ${words}.`);
    };

    /* Another lane is loaded when the reader opens it, and stays open while others controls are used. */
    const opened = new Set();
    const unfolded = (each, common) => TH.lazy({
        class: "lane", open: opened.has(each.id), toggle: ({target}) => opened[target.open ? "add" : "delete"](each.id),
    }, `On ${each.words}`, () => other(each, common));

    const render = (about, asked, main, {happened, pair, lane}) => {
        const address = tagged(lane, asked);
        const found = address.benchmark ? lookUp(lane, address.benchmark) : null;
        if (!found) {
            const unknown = address.benchmark && el("p", {role: "alert"}, `There is no series '${address.benchmark}' on ${TH.laneWords(lane)}: `
                + "choose one below, or another machine at the top.");
            main.append(el("div", {}, unknown, TH.multiples(lane, address)));
            return;
        }
        const {benchmark} = found;
        const size = sizeOf(found, address.size);
        const slots = slotsOf(lane, happened, benchmark, size);
        const times = address.times === "raw" ? "raw" : "";
        const all = H.members(lane, benchmark, size, slots, times === "raw");
        const shown = shownOf(happened, all, address);
        const {unit} = all[0].series;
        const limit = H.limitOf(lane, benchmark, size);
        const view = {
            x: address.x === "date" ? "date" : "order",
            y: ["log", "linear"].includes(address.y) ? address.y : unit === "seconds" ? "log" : "linear",
            relative: ["best", "start"].includes(address.relative) || (address.relative === "limit" && limit) ? address.relative : "",
            times,
        };
        const tags = lane.releases.map(({tag}) => tag);
        const name = nameOf(found, size);
        const here = {...address, benchmark, size};
        const hidden = new Set(all.filter((member) => !shown.includes(member)).map(({variant}) => variant));
        const others = TH.contents.lanes.filter((each) => each.machine === lane.machine.machine && each.id !== lane.id);
        const apart = (words, ...children) => el("section", {class: "lane", "aria-label": words},
                                                 others.length > 0 && el("h3", {}, words), children);
        const common = {view, address: here, name, benchmark, size, slots, hidden};
        main.append(el("div", {},
            el("p", {}, el("a", {href: TH.link("series.html")}, "All series in small")),
            pickers(lane, found, size),
            address.size && address.size !== size
                && el("p", {role: "alert"}, `There is no size '${address.size}' of it here: this is ${size}.`),
            address.variant && !all.some(({variant}) => variant === address.variant)
                && el("p", {role: "alert"}, `There is no variant '${address.variant}' of it here.`),
            address.release && released(lane, here, found, shown, pair),
            el("h2", {}, name), el("p", {class: "quiet"}, [TH.questionWords(found.question), TH.sized({question: found.question, size})].filter(Boolean).join(", ")),
            TH.device(lane) === "cpu" ? reproduce(shown, found, address) : el("p", {class: "quiet"}, "There is no script of it: ",
                lane.machine.device === "recorder" ? "it was counted without a GPU, and scripts measure on a CPU."
                    : "scripts measure on a CPU."),
            views(limit, {...view, unit, exact: address.exact, release: tags.includes(address.release) ? address.release : ""}),
            chips(all, shown), meanings(all),
            apart(TH.laneWords(lane), part(lane, {all, shown, happened, view, address: here, name, isOther: false})),
            others.map((each) => unfolded(each, common)), evidence(lane, shown),
            TH.device(lane) === "cpu" && codeOf(lane, shown, found, benchmark, size, pair)));
    };

    const arrive = ({evidence: isAsked, reproduce: isWanted, variant}) => {
        if (isAsked && document.getElementById("evidence")) {
            document.getElementById("evidence").scrollIntoView({behavior: "instant"});
        }
        if (isWanted) {
            openScript(variant);
        }
    };

    TH.page({
        title: (lane, {benchmark}) => (benchmark ? TH.words(benchmark.split(".track_").join(": ")) : "History"),
        needs: async (lane, asked) => {
            const address = tagged(lane, asked);
            const [from, to] = address.release || address.benchmark ? pairOf(lane, address) : [null, null];
            const [happened, pair, measured] = await Promise.all([TH.steps(lane, [address.benchmark]), TH.pair(lane, from, to), TH.measured(lane)]);
            return {happened, pair, lane: measured};
        },
        render, arrive,
    });
})();
