"use strict";

/* Should I upgrade? What lies between two releases, in cards and findings, and a map of what each release changed. */
(() => {
    const TH = window.torchHistory;
    const V = TH.verdicts;
    const {el} = TH;

    const MANY = 0.1;
    const BINS = [1.1, 1.2, 1.35, 1.5, 2];
    const PAIRS_KEPT = 200;
    const SLICE = 30;
    const FIRST_SLICE = 60;
    const MOST_AT_A_GLANCE = 60;
    const MISSING = 3;  // how strong it is that a case broke or runs now, as a logarithm
    const ROWS_BEYOND = 8;
    const COLUMNS_BEYOND = 4;
    const MOST_STEPS = 2;
    const MOST_GAINS = 1;
    const FIRST_METRICS = ["time", "peak_memory"];
    const CHANGED = ["worse", "better", "changed"];

    // --- what is known of a lane

    const memory = new WeakMap();
    const of = (lane) => {
        if (!memory.has(lane)) {
            memory.set(lane, {
                pairs: new Map(),
                changed: new Map(),
                missing: new Map(),
                patterns: lane.patterns.map((pattern) => new Set(pattern.map(([release]) => release))),
            });
        }
        return memory.get(lane);
    };

    const isKnown = (lane, old, tag) => of(lane).pairs.has(`${old} ${tag}`);
    const compared = (lane, old, tag) => {
        const {pairs} = of(lane);
        const key = `${old} ${tag}`;
        if (!pairs.has(key)) {
            const changes = V.compare(lane, old, tag);
            pairs.set(key, {changes, bySeries: new Map(changes.map((change) => [change.series, change]))});
            if (pairs.size > PAIRS_KEPT) {
                pairs.delete(pairs.keys().next().value);
            }
        }
        return pairs.get(key);
    };
    const changedBetween = (lane, old, tag) => {
        const {changed} = of(lane);
        const key = `${old} ${tag}`;
        if (!changed.has(key)) {
            const told = lane.changes && lane.changes[lane.releases.findIndex((release) => release.tag === tag)];
            if (told && told.old === old) {
                return told.changed;
            }
            const changes = isKnown(lane, old, tag) ? compared(lane, old, tag).changes : V.compare(lane, old, tag);
            changed.set(key, changes.filter((change) => CHANGED.includes(change.kind)).map((change) => change.series));
        }
        return changed.get(key);
    };

    const missingOf = (lane, index) => {
        const {missing} = of(lane);
        if (!missing.has(index)) {
            const listed = lane.series[index].missing.map(([release, reason]) => [release, lane.reasons[reason]]);
            missing.set(index, new Map(listed));
        }
        return missing.get(index);
    };
    const isMeasured = (lane, index, column) => of(lane).patterns[lane.series[index].pattern].has(column);

    // --- words

    const far = (ratio) => Math.max(ratio, 1 / ratio);
    const size = (ratio) => `${TH.common.times(far(ratio))} times`;
    const dated = ({tag, date, estimated}) => `${tag}, ${date}${estimated ? " (estimated)" : ""}`;
    const isTime = TH.verdicts.varies;
    const machine = (lane) => TH.contents.lanes.find((each) => each.id === lane.id).words;
    const seriesLink = (series, release, base, keys) => TH.link("series.html", {
        benchmark: series.benchmark, size: series.size, variant: series.variant, release, base, ...keys,
    });
    const runIt = (lane, options, ...tags) => {
        const python = /^release-py(.+)$/.exec(lane.environment);
        const words = ["torch-history", "run", python && "--lane", python && python[1], ...options, ...tags];
        return el("code", {}, words.filter(Boolean).map((word, i) => [i ? " " : "", el("span", {}, word)]));
    };

    // --- the answer sheet

    /* What the intervals of times leave open. */
    const leftOpen = (times) => {
        const ends = times.filter(({low}) => low !== null).map(({low, high}) => Math.max(high, 1 / low));
        return ends.length > 0 && `In half of the series of time a change of up to ${TH.common.times(TH.common.median(ends))} times is not excluded. `;
    };

    const doubts = (lane, before, newest, changes) => {
        const times = changes.filter((change) => isTime(lane.series[change.series])
            && change.old !== null && change.new !== null);
        const single = times.filter(({reason}) => reason === TH.contents.constants.verdicts.SINGLE);
        const unclear = times.filter((change) => change.kind === "can't tell" && !single.includes(change));
        const said = [];
        if (single.length && single.length === times.length) {
            said.push(`All times are inconclusive, because ${before} or ${newest} has a single launch, which is no `
                + "evidence of a time. Bytes and counts do not vary, so their verdicts are exact. ");
        } else if (single.length) {
            said.push(`${single.length} of ${times.length} times are inconclusive, because one of the two releases has a `
                + "single launch of them. ");
        }
        if (unclear.length > MANY * times.length) {
            said.push(`${unclear.length} of ${times.length} times are inconclusive, because they have too few launches for `
                + "their noise. ");
        }
        if (single.length || unclear.length > MANY * times.length) {
            const options = single.length ? ["--rounds", "5"] : ["--budget", "20m"];
            said.push("To decide more of them, run this on the machine: ", runIt(lane, options, before, newest), ".");
        }
        return said;
    };

    const pickers = (lane, from, to) => {
        const tags = lane.releases.map((release) => release.tag).reverse();
        const options = (chosen) => [...tags.includes(chosen) ? [] : [[chosen || "", chosen || "choose"]],
                                     ...tags.map((tag) => [tag, tag])];
        return el("div", {class: "controls"}, TH.select("From", "from", options(from), from),
                  TH.select("To", "to", options(to), to),
                  el("p", {class: "quiet"}, "The release that you have: ",
                     el("code", {}, "python -c \"import torch; print(torch.__version__)\"")));
    };

    const {chosen} = TH;

    /* The surest series of a finding that has a script, for a reader to see it on another machine; else the surest. */
    const shownOf = ({rows, best}) =>
        (rows.find(({of: {question, variant}}) => TH.contents.scripted.includes(`code-${question}-${variant}`)) || best).of;
    /* Bytes of a CPU say nothing of a GPU: links to the lanes that counted those. */
    const onGpu = (lane, name, keys) => {
        const counted = TH.contents.lanes.filter(({device, environment}) => device === "recorder" && environment === lane.environment);
        if (name !== "Memory" || TH.contents.lanes.find(({id}) => id === lane.id).device !== "cpu" || !counted.length) {
            return null;
        }
        return el("ul", {class: "sentence-list"}, counted.map((other) => {
            const within = costsOf(other, keys);
            const said = within === null ? "it was not counted for both releases."
                : within.length ? costWords(within, "memory") : "no release between them costs memory.";
            return el("li", {}, "On a GPU: ", el("a", {href: TH.link("index.html", {...keys, lane: other.id})}, other.words), ": ", said);
        }));
    };
    const isScripted = (lane, {question, variant}) => (lane.machine.device || "cpu") === "cpu"
        && TH.contents.scripted.includes(`code-${question}-${variant}`);
    const card = (lane, {from, to}, {name, verdict, worst, best}, first) => {
        const line = (label, found, rest) => found && el("p", {}, `${label}: `,
            el("a", {href: seriesLink(shownOf(found), to, from)}, TH.prose(TH.answer.brief(found))), rest);
        const isNew = worst && worst !== first;
        const whole = worst && TH.answer.sentence(worst).slice(TH.answer.brief(worst).length);
        return el("li", {}, el("h3", {}, name), el("p", {}, verdict), onGpu(lane, name, {from, to}),
                  line("Worst", worst, isNew ? [TH.prose(whole), " ", script(lane, {from, to}, worst), " ", howKnown(lane, {from, to}, worst)] : "."),
                  isNew && instead(lane, {from, to}, worst), line("Best", best, "."));
    };
    const script = (lane, {from, to}, found) => isScripted(lane, shownOf(found))
        && [el("a", {href: seriesLink(shownOf(found), to, from, {reproduce: "1"})}, "A script that shows it"), "."];

    // --- what a reader asks first, in a line each

    const LIKE = {
        SLOWER: "slower", FASTER: "faster", HUNGRIER: "more", LEANER: "less", MORE: "more", FEWER: "fewer", BROKE: "broken", FIXED: "running again",
    };
    /* The releases on the way that changed most of a finding's series: [release, the changes of one verdict]. */
    const stepsOf = (lane, {from, to}, {rows}) => {
        const tags = lane.releases.map(({tag}) => tag);
        const ofRows = new Set(rows.map(({series}) => series));
        const moved = tags.slice(tags.indexOf(from) + 1, tags.indexOf(to) + 1)
            .map((tag) => [tag, changedBetween(lane, V.adjacent(lane, tag), tag).filter((index) => ofRows.has(index))])
            .filter(([, series]) => series.length);
        const most = [...moved].sort(([, one], [, other]) => other.length - one.length).slice(0, 3 * MOST_STEPS).map(([tag]) => tag);
        const steps = tags.filter((tag) => most.includes(tag)).flatMap((tag) => {
            const told = compared(lane, V.adjacent(lane, tag), tag).changes.filter(({series, verdict}) => ofRows.has(series) && LIKE[verdict]);
            return [...new Set(told.map(({verdict}) => verdict))].map((verdict) => [tag, told.filter((change) => change.verdict === verdict)]);
        });
        return {steps, releases: moved.map(([tag]) => tag)};
    };
    const stepWords = (lane, many) => ([tag, told]) => {
        const ratios = told.map(({ratio}) => ratio && far(ratio)).filter(Boolean);
        const [least, most] = [Math.min, Math.max].map((end) => TH.common.times(end(...ratios)));
        const factors = least === most ? least : `${least} to ${most}`;
        const {verdict, series} = told[0];
        const word = isTime(lane.series[series]) && ratios.length === told.length ? `${factors} times ${LIKE[verdict]}` : LIKE[verdict];
        const where = many > 1 ? ` in ${told.length} of ${many} series` : "";
        return `${tag}: ${word}${where}`;
    };
    /* When a finding came about, by the verdicts on neighbouring releases. */
    const when = (lane, pair, found) => {
        const {steps, releases} = stepsOf(lane, pair, found);
        const weight = ([, told]) => told.reduce((sum, {ratio}) => sum + Math.abs(Math.log(ratio || Math.E)), 0);
        const listed = (kinds, most) => steps.filter(([, told]) => kinds.includes(told[0].kind))
            .sort((one, other) => weight(other) - weight(one)).slice(0, most);
        const [costs, gains] = [listed([found.kind], MOST_STEPS), listed(CHANGED.filter((kind) => kind !== found.kind), MOST_GAINS)];
        const words = (some) => some.map(stepWords(lane, found.rows.length)).join("; ");
        const shown = new Set([...costs, ...gains].map(([tag]) => tag));
        const rest = releases.filter((tag) => !shown.has(tag)).length;
        const said = [costs.length && `${words(costs)}.`, gains.length && `The other way: ${words(gains)}.`,
                      rest && `Other steps at ${rest} more ${rest === 1 ? "release" : "releases"}.`].filter(Boolean);
        return said.length ? said.join(" ") : "No two neighbouring releases show it surely.";
    };
    const capital = (text) => text[0].toUpperCase() + text.slice(1);
    const cause = ({rows, explained, because}) => {
        if (!because) {
            return "Unexplained.";
        }
        const some = explained < rows.length ? `${explained} of ${rows.length} series: ` : "";
        const {BESIDE} = TH.contents.constants.why;
        if (because.startsWith(BESIDE)) {
            return `Unexplained. ${capital(some + because.slice(BESIDE.length))} too.`;
        }
        return capital(`${some}${because}.`);
    };
    const gpus = ({from, to}, old, now) => {
        const lost = TH.common.lost(old.architectures, now.architectures, from, to);
        const {wheels, architectures} = TH.contents;
        const isUpgrade = wheels.indexOf(from) < wheels.indexOf(to);
        return [
            lost && [el("strong", {class: "worse"}, lost), " ", isUpgrade && TH.common.lastWith(old.architectures, now.architectures, wheels, architectures)],
            el("details", {}, el("summary", {}, `GPUs that ${to} runs on`),
               TH.common.gpus(old.architectures, now.architectures, from, to).slice(lost.length)),
        ];
    };
    const toInstall = (old, now) => {
        const told = (name, words) => (old.told[name] === now.told[name] ? `${words} ${now.told[name]}, as before`
            : `${words} ${old.told[name]} → ${now.told[name]}`);
        const said = [told("download, with all packages", "Download with all packages"), told("CUDA", "CUDA"), told("least glibc", "glibc at least"), told("C++11 ABI", "C++11 ABI")];
        return `${said.join("; ")}.`;
    };
    const howSure = (lane, changes, first) => {
        const times = changes.filter((change) => isTime(lane.series[change.series]) && change.old !== null && change.new !== null);
        const unsure = changes.filter(({kind}) => kind === "can't tell").length;
        const {ratio, low, high, of: series} = first ? first.rows.find((row) => row.of === shownOf(first)) : {};
        const {times: factor} = TH.common;
        const which = first && isScripted(lane, series) ? "The script's case" : "The surest case";
        return [
            ratio && low < high && `${which}, ${TH.name(series)}: ${factor(ratio)} times (${factor(low)} to ${factor(high)}). `,
            times.length > 0 && `At most ${100 * TH.contents.constants.verdicts.FALSE_RATE} % of the changes of time are expected to be false. `,
            unsure ? `${unsure} series are INCONCLUSIVE. ` : !times.length && "Counts and bytes do not vary, so these verdicts are exact. ",
            leftOpen(times), el("a", {href: "method.html#verdicts"}, "How a verdict is made"), ".",
        ];
    };
    /* What is said where no finding costs anything. */
    const nothingWorse = (changes, all) => {
        const unsure = changes.filter(({kind}) => kind === "can't tell").length;
        return all.some(({kind}) => kind === "worse") ? "Only luck of placement, which is hidden."
            : unsure ? `Nothing is known to be worse, and ${unsure} of ${changes.length} series are INCONCLUSIVE.`
                : `Nothing got worse in ${changes.length} series.`;
    };
    const running = (lane, {from, to}, {cases, worst, best}) => [cases, [worst, best].filter(Boolean).map((found) =>
        [" ", el("a", {href: seriesLink(shownOf(found), to, from)}, TH.prose(TH.answer.brief(found))), "."])];
    const inShort = (lane, {from, to}, {first, all, changes, wheels, cards}) => {
        const [old, now] = [wheels[from], wheels[to]];
        const broke = first && first.verdict === "BROKE";
        const end = broke ? TH.answer.sentence(first).slice(TH.answer.brief(first).length) : ".";
        const rows = [
            ["Worst", first ? [el("a", {href: seriesLink(shownOf(first), to, from)}, TH.prose(TH.answer.brief(first))), TH.prose(end), " ", script(lane, {from, to}, first)]
                : nothingWorse(changes, all)],
            first && !broke && ["When", when(lane, {from, to}, first)],
            first && !broke && ["Why", [TH.prose(cause(first)), " ", howKnown(lane, {from, to}, first)]],
            first && ["What to do", toDo(lane, {from, to}, first)],
            old && now && ["GPUs", gpus({from, to}, old, now)],
            ["Broke", running(lane, {from, to}, cards.at(-1))],
            old && now && ["To install", toInstall(old, now)],
            ["How sure", howSure(lane, changes, first)],
            ["Not known", el("span", {id: "not-measured"}, notMeasured(lane, changes), elsewhere(lane, changes, {from, to}))],
        ];
        return el("dl", {id: "in-short", "aria-label": "The answer in short"},
                  rows.filter((row) => row && row[1]).map(([term, said]) => el("div", {}, el("dt", {}, term), el("dd", {}, said))));
    };
    const changeItem = ({from, to}, change) => {
        const series = change.of;
        const start = `${TH.name(series)}: ${TH.shown(change.verdict)}`;
        const rest = change.sentence.startsWith(start) ? change.sentence.slice(start.length) : `: ${change.sentence}`;
        return el("li", {}, el("a", {href: seriesLink(series, to, from)}, TH.name(series)), ": ", TH.mark(change.verdict), rest);
    };
    /* What to do about a finding that costs something. */
    const toDo = (lane, {from, to}, {kind, verdict, rows}) => {
        const said = kind === "worse" && verdict !== "BROKE" && TH.instead.advice(lane, rows.map(({of: series}) => series), to);
        return said && [TH.prose(said.sentence), said.series && [" ", el("a", {href: seriesLink(said.series, to, from,
            isScripted(lane, said.series) ? {reproduce: "1"} : {})}, "Its code and its history"), "."]];
    };
    const instead = (lane, pair, found) => {
        const said = toDo(lane, pair, found);
        return said && el("p", {class: "instead"}, el("strong", {}, "What to do: "), said);
    };
    /* The release since which exact bytes are as they are now, where that is not all that was chosen. */
    const sinceWhen = (lane, {from, to}, {of: series, new: now}) => {
        const [first, last] = [from, to].map((tag) => lane.releases.findIndex((release) => release.tag === tag));
        const numbers = new Map(lane.patterns[series.pattern].map(([release], i) => [release, series.numbers[i]]));
        const measured = [...numbers.keys()].filter((release) => release > first && release <= last).sort((a, b) => a - b);
        const since = measured.findLast((release, i) => i === 0 || numbers.get(measured[i - 1]) !== now);
        return series.unit === "bytes" && now !== null && measured.length > 1
            ? ` ${series.parameters.join(" ")} needs ${TH.human(now, "bytes")} since ${lane.releases[since].tag}.` : "";
    };
    const howKnown = (lane, pair, {rows, because}) => {
        const found = because && TH.instead.evidence(lane, rows.find((row) => row.because === because) || rows[0], pair);
        return found && [TH.prose(found.how), ": ", el("a", {href: found.href}, "the evidence of this cause"), "."];
    };
    const proof = (lane, pair, found) => {
        const [how, since] = [howKnown(lane, pair, found), sinceWhen(lane, pair, found.best)];
        return (how || since) && el("p", {class: "instead"}, how, since);
    };
    /* What the variant of a finding does, where it is of one variant. */
    const measured = ({best: {of: series}, rows}) => {
        const means = rows.every(({of: {variant}}) => variant === series.variant) && TH.meaning(series);
        return means && el("p", {class: "quiet"}, TH.prose(`\`${series.variant}\`: ${means}.`));
    };
    /* A finding whose rows the reader opened is named in the address, so that a copy of it shows them too. */
    const opened = () => (TH.address().open || "").split("|").filter(Boolean);
    const noted = (name) => ({target}) => {
        const others = opened().filter((each) => each !== name);
        TH.keep({open: (target.open ? [...others, name] : others).join("|")});
    };
    const finding = (lane, pair) => (found) => {
        const words = TH.prose(TH.answer.sentence(found));
        const advice = [measured(found), instead(lane, pair, found), proof(lane, pair, found)];
        if (found.rows.length === 1) {
            return el("li", {}, TH.mark(found.verdict), " ",
                      el("a", {href: seriesLink(found.best.of, pair.to, pair.from)}, words), advice);
        }
        const name = TH.answer.title(found);
        return el("li", {}, el("details", {open: opened().includes(name), toggle: noted(name)},
                               el("summary", {}, TH.mark(found.verdict), " ", words),
                               el("ul", {class: "sentence-list"}, found.rows.map((change) => changeItem(pair, change)))), advice);
    };

    /* What a reader of an upgrade expects and no series of it tells: [words, the metrics that would]. */
    const unmeasured = (lane, changes) => {
        const metrics = new Set(changes.map((change) => lane.series[change.series].metric));
        return Object.entries(TH.contents.constants.answer.UNMEASURED).filter(([, told]) => !told.some((metric) => metrics.has(metric)));
    };

    const notMeasured = (lane, changes) => {
        const questions = new Set(changes.map((change) => lane.series[change.series].question)).size;
        const {device} = TH.contents.lanes.find(({id}) => id === lane.id);
        const where = {cpu: "on a CPU: no GPU time", recorder: "by the recorder: no kernel ran and nothing was timed"};
        const {threads} = lane.machine;
        const said = !threads ? "" : String(threads) === "1" ? ", with one thread" : `, with ${threads} threads`;
        const absent = unmeasured(lane, changes);
        return `Measured ${where[device] || "on " + device}${said}, ${questions} question${questions === 1 ? "" : "s"}.`
            + (absent.length ? ` Not measured here: ${absent.map(([words]) => words).join(", ")}.` : "");
    };

    /* What became worse on the way, of what a lane's index tells of. */
    const costsOf = ({costs, counted: tags}, {from, to}) => {
        const [first, last] = [from, to].map((tag) => tags.indexOf(tag));
        const within = costs.filter(([old, now]) => tags.indexOf(old) >= first && tags.indexOf(now) <= last);
        return first < 0 || last < 0 ? null : within;
    };
    const costWords = (within, what) => [within.length === 1 ? `one change costs ${what}` : `${within.length} changes cost ${what}, the newest`,
                                         ` at ${within[0][1]}: `, TH.prose(within[0][2])];

    /** Links to lanes of the same environment that measured what this one did not, such as start-up, and what became worse. */
    const elsewhere = (lane, changes, keys) => {
        const absent = unmeasured(lane, changes);
        const able = TH.contents.lanes.filter(({id, environment}) => id !== lane.id && environment === lane.environment)
            .map((other) => ({other, what: absent.filter(([, told]) => other.metrics.some((metric) => told.includes(metric)))}))
            .filter(({what}) => what.length);
        return able.map(({other, what}) => {
            const within = costsOf(other, keys);
            const link = el("a", {href: TH.link("index.html", {...keys, lane: other.id}), title: other.words}, "Another machine");
            return [" ", link, ` measured ${what.map(([said]) => said).join(" and ")}`,
                    ...(within && within.length ? [": between these releases ", costWords(within, "time or memory")] : ["."])];
        });
    };

    /** What the wheels of two releases say, where they differ. */
    const brought = (from, to, wheels) => {
        const [old, now] = [from, to].map((tag) => wheels[tag]);
        if (!old || !now) {
            return null;
        }
        const only = (one, other) => one.architectures.filter((each) => !other.architectures.includes(each)).join(" ") || "-";
        const linked = (name) => el("a", {href: TH.link("facts.html", {from, to})}, name);
        const names = [...new Set([...Object.keys(old.told), ...Object.keys(now.told)])];
        const rows = [["GPU architectures of one alone", only(old, now), only(now, old)],
                      ...names.map((name) => [linked(name), old.told[name] || "-", now.told[name] || "-"])]
            .filter(([, before, after]) => before !== after);
        const compare = `https://github.com/pytorch/pytorch/compare/${from}...${to}`;
        return [
            el("h3", {}, "What else the upgrade brings"),
            el("p", {}, el("a", {href: compare}, `PyTorch's changes from ${from} to ${to}`), ". ",
               el("a", {href: TH.link("facts.html", {from, to})}, "What the wheels of all releases bring, in bytes"), "."),
            rows.length > 0 && el("details", {id: "brought"}, el("summary", {}, `${rows.length} facts of the wheels differ`),
                TH.table({caption: "What the wheels say", head: ["what", from, to], rows})),
        ];
    };

    /** One pair of releases in an answer: cards, findings, how sure that is, and what else an upgrade brings. */
    const isLuck = ({because}) => because.includes(TH.contents.constants.why.PLACEMENT);
    /* What a reader chose not to see: findings that are luck of placement. */
    const muted = (found, address) => {
        const count = found.filter(isLuck).length;
        return count > 0 && el("div", {class: "controls"}, TH.toggle(
            `Without luck of placement (${count} ${count === 1 ? "finding" : "findings"}: ${TH.contents.constants.why.PLACEMENT})`,
            "muted", address.muted));
    };

    const sheet = (lane, address, wheels) => {
        const {from, to} = chosen(lane, address);
        const newest = lane.releases.at(-1);
        const onAxis = TH.contents.newest;
        const behind = to === newest.tag && onAxis.tag !== newest.tag && el("p", {}, `The newest release, ${onAxis.tag}, is not `
            + "measured here yet: ", runIt(lane, [], newest.tag, onAxis.tag), ".");
        const section = (...children) =>
            el("section", {class: "newest panel", "aria-labelledby": "newest-title"}, children);
        const headline = (text) => el("h2", {id: "newest-title"}, text);
        const unknown = [from, to].find((tag) => tag !== null && !lane.releases.some((each) => each.tag === tag));
        if (unknown !== undefined) {
            return section(pickers(lane, from, to), headline("Should I upgrade?"), el("p", {role: "alert"},
                `There are no results of '${unknown}' on ${machine(lane)}: choose another release.`));
        }
        if (from === null) {
            return section(
                headline(`${to} is the only release measured on ${machine(lane)}`),
                el("p", {}, "There is nothing to compare it with. This also measures the release before it: ",
                   runIt(lane, [], to), "."));
        }
        if (from === to) {
            return section(pickers(lane, from, to), headline("Should I upgrade?"),
                           el("p", {role: "alert"}, `${to} was chosen on both sides: choose two releases.`));
        }
        const {changes} = compared(lane, from, to);
        const against = `${to} against ${from} on ${machine(lane)}`;
        if (!changes.length) {
            return section(pickers(lane, from, to), headline(`${against}: nothing in common`),
                           el("p", {}, "No series was measured on both in the same size and version. Measure them ",
                              "together: ", runIt(lane, [], from, to), "."), behind);
        }
        return section(pickers(lane, from, to), answer(lane, {...address, from, to}, {changes, wheels}, headline, against), behind);
    };

    const answer = (lane, address, {changes, wheels}, headline, against) => {
        const {from, to} = address;
        const tally = TH.tally(changes);
        const counted = TH.tally(changes.filter(({unconfirmed}) => !unconfirmed)).filter(([verdict]) => CHANGED.includes(TH.kind(verdict)))
            .map(TH.counted).join(", ") || TH.verdicts.unchanged(lane, changes);
        const all = TH.answer.findings(lane, changes);
        const found = address.muted ? all.filter((one) => !isLuck(one)) : all;
        const shown = TH.answer.picked(found);
        const link = (keys, ...children) => el("a", {href: TH.link("upgrade.html", {from, to, ...keys})}, children);
        const moved = Object.entries(V.moved(lane, from, to)).map(([name, [old, now]]) => `${name} ${old} → ${now}`).join(", ");
        const sure = V.summary(lane, from, to, changes).slice(1).filter((line) => !/^The environments differ|single launch/u.test(line));
        const shared = TH.answer.apart(lane, changes);
        const series = found.reduce((total, one) => total + one.rows.length, 0);
        const cards = TH.answer.cards(lane, changes, found);
        const first = found.find(({kind}) => kind === "worse");
        return [
            headline(`${against}: ${counted}.`),
            inShort(lane, {from, to}, {first, all, changes, wheels, cards}),
            el("ul", {class: "tally", "aria-label": "Series by verdict"}, tally.map(([verdict, count]) =>
                el("li", {}, link({verdict}, el("strong", {}, `${count} `), TH.mark(verdict), TH.kind(verdict) === "changed" && " counts")))),
            el("p", {id: "apart", class: "quiet"}, shared.map(([verdict, parts]) =>
                [TH.shown(verdict), ": ", parts.map(([name, count]) => `${count} in ${name}`).join(", "), ". "]),
               el("a", {href: "method.html#glossary"}, "What INCONCLUSIVE, lane, round and margin mean"), "."),
            el("ul", {class: "cards", "aria-label": "By what was measured"}, cards.slice(0, -1).map((each) => card(lane, {from, to}, each, first))),
            muted(all, address),
            shown.length > 0 && [
                el("h3", {id: "findings-title"}, shown.length === found.length ? `${series} changed series are these findings`
                    : `${series} changed series are ${found.length} findings; these weigh most`),
                el("ol", {class: "sentence-list", id: "findings", "aria-labelledby": "findings-title"},
                   shown.map(finding(lane, {from, to}))),
            ],
            el("h3", {}, "How sure, in detail"),
            el("p", {id: "sure"},
               doubts(lane, from, to, changes).map((said) => typeof said === "string" ? TH.explained(said) : said),
               " ", cards.at(-1).series,
               " ", TH.explained(sure.join(" ")), " ",
               el("a", {href: "method.html#verdicts"}, "How a verdict is made"), ". ",
               el("a", {href: "method.html#calibration"}, "Which changes verdicts find"), "."),
            brought(from, to, wheels),
            moved && el("p", {class: "quiet"}, `The environment also changed: ${moved}.`),
            el("p", {class: "onward"}, link({}, `Every series from ${from} to ${to}, with its cause`)),
        ];
    };

    // --- the map: a windowed table, in which only what is in view exists

    const narrow = window.matchMedia("(max-width: 600px)");
    const geometry = (width, columns) => {
        const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
        const sizes = narrow.matches ? [7.75, 4, 2.75] : [17, 4.1, 1.75];
        const [name, column, row] = sizes.map((each) => Math.round(each * rem));
        return {name, column: between(column, Math.floor((width - name) / columns), 10 * rem), row};
    };
    const later = (work) =>
        window.requestIdleCallback ? window.requestIdleCallback(work, {timeout: 300}) : setTimeout(work, 16);
    const between = (low, number, high) => Math.max(low, Math.min(number, high));
    const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    const places = new Map();

    const levelOf = (change) => {
        if (change.kind !== "worse" && change.kind !== "better") {
            return 0;
        }
        return change.ratio ? 1 + BINS.filter((bin) => far(change.ratio) > bin).length : BINS.length + 1;
    };

    const shortWords = (change) => {
        const sign = TH.sign(change.verdict);
        if (!CHANGED.includes(change.kind) || !change.ratio) {
            return sign;
        }
        const direction = change.kind === "changed" ? (change.ratio > 1 ? "+" : "−") : "";
        return `${sign}${direction}${TH.common.times(far(change.ratio))}×`;
    };

    /** What the cell of a series and a release says: {text, kind, level, label, sentence, reason}. */
    const saying = (lane, index, column, old) => {
        const name = TH.name(lane.series[index]);
        const {tag} = lane.releases[column];
        const said = (text, kind, words, more = {}) => {
            const label = `${name}, ${tag}: ${words}`;
            return {text, kind, level: 0, label, sentence: `${label}.`, reason: null, ...more};
        };
        const reason = missingOf(lane, index).get(column);
        if (!isMeasured(lane, index, column) && reason === undefined) {
            return said("", "blank", "not measured");
        }
        const nothing = (words) => reason === undefined ? said("·", "alone", words)
            : said(TH.sign("NEVER RAN"), "never-ran", `no number: ${reason}`, {reason});
        if (old === null) {
            return nothing("the first release measured here, with nothing before it to compare with");
        }
        if (old === tag) {
            return nothing("the release that the others are compared with");
        }
        if (!isKnown(lane, old, tag)) {
            return said("…", "waiting", `being compared with ${old}`);
        }
        const change = compared(lane, old, tag).bySeries.get(index);
        if (change === undefined) {
            return nothing(`${old} was not measured, so there is nothing to compare with`);
        }
        const by = CHANGED.includes(change.kind) && change.ratio ? ` ${size(change.ratio)}` : "";
        const why = change.new === null && change.reason ? `: ${change.reason}` : "";
        const level = levelOf(change);
        const sentence = `${tag} against ${old}: ${change.sentence}`;
        return said(shortWords(change), TH.classOf(change.verdict), `${TH.shown(change.verdict)}${by} against ${old}${why}`,
                    {level, sentence, reason: change.reason || null});
    };

    /** A grid whose rows are {question} or {index}; `tell` shows a sentence, `place` is where it stood before. */
    const grid = (lane, olds, withMetric, tell, place) => {
        const total = lane.releases.length;
        let rows = [];
        let shape = {};
        let shown = null;
        let nodes = new Map();
        let active = {row: 1, column: total - 1};
        let drawing = false;
        let working = false;
        let background = null;

        const colgroup = el("colgroup");
        const head = el("thead");
        const body = el("tbody");
        const table = el("table", {
            role: "grid", "aria-label": "Verdicts of series by release", "aria-colcount": total + 1,
        }, colgroup, head, body);
        const region = el("div", {
            id: "map", class: "scroll heat", tabindex: "0", role: "region", "aria-label": "Map of series by release",
        }, table);

        const at = (row, column) => nodes.get(`${row} ${column}`);
        const targetOf = (node) => node && (node.querySelector("a") || node);
        const keep = (node, row, column) => {
            node.dataset.row = row;
            node.dataset.column = column;
            targetOf(node).tabIndex = -1;
            nodes.set(`${row} ${column}`, node);
            return node;
        };
        const hidden = (attributes = {}) => el("td", {class: "spacer", "aria-hidden": "true", ...attributes});

        const paint = (node, row, column) => {
            const {text, kind, level, label, reason} = saying(lane, rows[row].index, column, olds[column]);
            const target = targetOf(node);
            node.className = `cell ${kind}${level ? " level-" + level : ""}`;
            target.textContent = text;
            target.setAttribute("aria-label", label);
            if (reason) {
                target.title = reason;
            }
        };
        const cell = (row, column) => {
            const series = lane.series[rows[row].index];
            const empty = saying(lane, rows[row].index, column, null).kind === "blank";
            const node = el("td", {"aria-colindex": column + 2},
                            empty ? null : el("a", {href: seriesLink(series, lane.releases[column].tag)}));
            keep(node, row, column);
            paint(node, row, column);
            return node;
        };
        const release = (column) => {
            const {tag} = lane.releases[column];
            return keep(el("th", {scope: "col", "aria-colindex": column + 2}, el("a", {
                href: TH.link("release.html", {release: tag}), title: dated(lane.releases[column]),
            }, tag)), -1, column);
        };
        const line = (row, columns) => {
            const {question, index} = rows[row];
            if (question !== undefined) {
                return el("tr", {class: "question", "aria-rowindex": row + 2},
                          el("th", {scope: "row", "aria-colindex": 1}, TH.words(question)),
                          hidden({colspan: columns.length + 2}));
            }
            const series = lane.series[index];
            const {metric, variant, size: ofSize} = series;
            const quiet = [ofSize, withMetric && variant ? TH.words(metric) : ""].filter(Boolean).join(", ");
            const name = el("th", {scope: "row", "aria-colindex": 1}, el("a", {
                href: seriesLink(series), title: TH.name(series),
            }, el("span", {}, variant || TH.words(metric)), " ", el("span", {class: "quiet"}, quiet)));
            return el("tr", {"aria-rowindex": row + 2}, keep(name, row, -1), hidden(),
                      columns.map((column) => cell(row, column)), hidden());
        };

        const inView = () => {
            const {clientWidth, clientHeight, scrollLeft, scrollTop} = region;
            return {
                top: Math.floor(scrollTop / shape.row),
                bottom: Math.ceil((scrollTop + clientHeight - shape.row) / shape.row),
                left: between(0, Math.floor(scrollLeft / shape.column), total - 1),
                right: between(1, Math.ceil((scrollLeft + clientWidth - shape.name) / shape.column), total),
            };
        };
        const draw = (anew = false) => {
            const view = inView();
            const span = {
                top: Math.max(0, (Math.floor(view.top / ROWS_BEYOND) - 1) * ROWS_BEYOND),
                bottom: Math.min(rows.length, (Math.ceil(view.bottom / ROWS_BEYOND) + 1) * ROWS_BEYOND),
                left: Math.max(0, (Math.floor(view.left / COLUMNS_BEYOND) - 1) * COLUMNS_BEYOND),
                right: Math.min(total, (Math.ceil(view.right / COLUMNS_BEYOND) + 1) * COLUMNS_BEYOND),
            };
            const same = shown && Object.keys(span).every((side) => span[side] === shown[side]);
            if (same && !anew) {
                schedule();
                return;
            }
            shown = span;
            const focused = table.contains(document.activeElement);
            nodes = new Map();
            const columns = Array.from({length: shown.right - shown.left}, (_, i) => shown.left + i);
            const wide = (width) => el("col", {style: `width: ${width}px`});
            table.style.width = `${shape.name + total * shape.column}px`;
            table.style.setProperty("--row", `${shape.row}px`);
            table.setAttribute("aria-rowcount", rows.length + 1);
            const beyond = [shown.left, total - shown.right].map((count) => wide(count * shape.column));
            colgroup.replaceChildren(wide(shape.name), beyond[0], ...columns.map(() => wide(shape.column)), beyond[1]);
            head.replaceChildren(el("tr", {"aria-rowindex": 1}, el("th", {scope: "col", "aria-colindex": 1}, "Series"),
                                    hidden(), columns.map(release), hidden()));
            const gap = (count) => el("tr", {"aria-hidden": "true"},
                                      hidden({colspan: columns.length + 3, style: `height: ${count * shape.row}px`}));
            const lines = rows.slice(shown.top, shown.bottom).map((_, i) => line(shown.top + i, columns));
            body.replaceChildren(gap(shown.top), ...lines, gap(Math.max(0, rows.length - shown.bottom)));
            settle(view, focused);
            schedule();
        };

        const settle = (view, focused) => {
            if (!at(active.row, active.column)) {
                const row = between(view.top, active.row, Math.max(view.top, view.bottom - 1));
                active = {row: rows[row] && rows[row].question !== undefined ? row + 1 : row,
                          column: between(view.left, active.column, view.right - 1)};
                if (focused) {
                    region.focus({preventScroll: true});
                }
            } else if (focused) {
                targetOf(at(active.row, active.column)).focus({preventScroll: true});
            }
            makeActive(active.row, active.column);
        };
        const makeActive = (row, column) => {
            const before = targetOf(at(active.row, active.column));
            if (before) {
                before.tabIndex = -1;
            }
            active = {row, column};
            const target = targetOf(at(row, column));
            if (target) {
                target.tabIndex = 0;
            }
            place.active = rows[row] && column >= 0 ? {index: rows[row].index, column} : null;
        };

        const reveal = (row, column) => {
            if (row >= 0) {
                const top = row * shape.row;
                const room = region.clientHeight - 2 * shape.row;
                const heading = rows[row - 1]?.question === undefined ? 0 : shape.row;
                region.scrollTop = between(top - room, region.scrollTop, top - heading);
            }
            if (column >= 0) {
                const left = column * shape.column;
                const room = region.clientWidth - shape.name - shape.column;
                region.scrollLeft = between(left - room, region.scrollLeft, left);
            }
        };
        const move = (row, column, step) => {
            let to = row;
            while (rows[to] && rows[to].question !== undefined) {
                to += step;
            }
            if (to >= rows.length || to < -1 || (to === -1 && column === -1)) {
                return;
            }
            reveal(to, column);
            draw();
            makeActive(to, column);
            targetOf(at(to, column)).focus({preventScroll: true});
        };
        const placeOf = (event) => {
            const node = event.target.closest("[data-row]");
            return node && {row: Number(node.dataset.row), column: Number(node.dataset.column)};
        };
        const sentenceOf = ({row, column}) => {
            if (row < 0) {
                return `${dated(lane.releases[column])}.`;
            }
            return column < 0 ? `${TH.name(lane.series[rows[row].index])}.`
                : saying(lane, rows[row].index, column, olds[column]).sentence;
        };
        table.addEventListener("focusin", (event) => {
            const found = placeOf(event);
            if (found) {
                makeActive(found.row, found.column);
                tell(sentenceOf(found));
            }
        });
        table.addEventListener("mouseover", (event) => {
            const found = placeOf(event);
            if (found) {
                tell(sentenceOf(found));
            }
        });
        table.addEventListener("keydown", (event) => {
            const found = placeOf(event);
            if (!found || event.altKey || event.metaKey) {
                return;
            }
            const page = Math.max(1, Math.floor(region.clientHeight / shape.row) - 2);
            const last = rows.length - 1;
            const {row, column} = found;
            const [down, right] = STEPS[event.key] || [0, 0];
            const to = {
                Home: event.ctrlKey ? [0, 0, 1] : [row, 0, 1],
                End: event.ctrlKey ? [last, total - 1, -1] : [row, total - 1, 1],
                PageDown: [Math.min(row + page, last), column, -1],
                PageUp: [Math.max(row - page, 0), column, 1],
            }[event.key] || (STEPS[event.key] && [row + down, between(-1, column + right, total - 1), down || 1]);
            if (to) {
                event.preventDefault();
                move(...to);
            }
        });

        // --- verdicts, those in view first, a slice of time each

        const waiting = () => {
            const view = inView();
            const isWaiting = (column) => olds[column] !== null && olds[column] !== lane.releases[column].tag
                && !isKnown(lane, olds[column], lane.releases[column].tag);
            const newestFirst = (left, right) =>
                Array.from({length: right - left}, (_, i) => right - 1 - i).find(isWaiting);
            return newestFirst(view.left, view.right) ?? newestFirst(shown.left, shown.right) ?? -1;
        };
        /* What is known of a release now, whoever compared it. */
        const paintColumn = (column) => {
            for (let row = shown ? shown.top : 0; shown && row < shown.bottom; row += 1) {
                const node = at(row, column);
                if (node && rows[row].index !== undefined) {
                    paint(node, row, column);
                }
            }
        };
        const work = () => {
            working = false;
            if (!region.isConnected) {
                return;
            }
            const until = performance.now() + SLICE;
            do {
                const column = waiting();
                if (column < 0) {
                    break;
                }
                compared(lane, olds[column], lane.releases[column].tag);
                paintColumn(column);
            } while (performance.now() < until);
            if (background && waiting() < 0 && !background()) {
                background = null;
            }
            schedule();
        };
        const schedule = () => {
            if (!working && (background || waiting() >= 0)) {
                working = true;
                later(work);
            }
        };

        region.addEventListener("scroll", () => {
            place.left = region.scrollLeft;
            place.top = region.scrollTop;
            if (!drawing) {
                drawing = true;
                requestAnimationFrame(() => {
                    drawing = false;
                    draw();
                });
            }
        }, {passive: true});
        new ResizeObserver(() => {
            const now = geometry(region.clientWidth, total);
            const anew = ["name", "column", "row"].some((side) => now[side] !== shape[side]);
            shape = now;
            draw(anew);
        }).observe(region);

        /** Other rows, with the one at the top of the view kept where it is. */
        const setRows = (now) => {
            const top = Math.floor(region.scrollTop / shape.row);
            const held = rows.slice(top).find((row) => row.index !== undefined);
            const within = held ? rows.indexOf(held) * shape.row - region.scrollTop : 0;
            const {index} = rows[active.row] || {};
            const focused = table.contains(document.activeElement);
            rows = now;
            const again = index === undefined ? -1 : rows.findIndex((row) => row.index === index);
            const first = Math.min(1, rows.length - 1);
            const goal = {row: again < 0 && active.row >= 0 ? first : again, column: active.column};
            active = goal;
            draw(true);
            const kept = held && region.scrollTop > 0 ? rows.findIndex((row) => row.index === held.index) : -1;
            if (kept >= 0) {
                region.scrollTop = kept * shape.row - within;
                draw();
            }
            if (focused && at(goal.row, goal.column)) {
                makeActive(goal.row, goal.column);
                targetOf(at(goal.row, goal.column)).focus({preventScroll: true});
            }
        };
        const start = (now, workBehind) => {
            const {left, top, active: was} = place;
            shape = geometry(region.clientWidth, total);
            background = workBehind;
            rows = now;
            const row = was ? rows.findIndex((each) => each.index === was.index) : -1;
            const goal = row < 0 ? {row: Math.min(1, rows.length - 1), column: total - 1} : {row, column: was.column};
            active = goal;
            draw(true);
            region.scrollLeft = left ?? region.scrollWidth;
            region.scrollTop = top ?? 0;
            draw();
            if (at(goal.row, goal.column)) {
                makeActive(goal.row, goal.column);
            }
        };
        return {region, start, setRows, paintColumn};
    };

    // --- the same at a glance: a row per variant, in each cell the largest change of any of its sizes

    const strength = (change) => (!CHANGED.includes(change.kind) ? 0 : change.ratio ? Math.abs(Math.log(change.ratio)) : MISSING);
    const largest = (lane, indexes, column, old) => {
        const {bySeries} = compared(lane, old, lane.releases[column].tag);
        const changes = indexes.map((index) => bySeries.get(index)).filter(Boolean);
        return changes.reduce((most, one) => (!most || strength(one) > strength(most) ? one : most), null);
    };
    const glanceCell = (lane, column, old, change) => {
        if (!change || !strength(change)) {
            return {text: "", class: `cell ${change ? "same" : "blank"}`};
        }
        const level = levelOf(change);
        return {text: TH.sign(change.verdict), title: saying(lane, change.series, column, old).label,
                class: `cell ${TH.classOf(change.verdict)}${level ? " level-" + level : ""}`};
    };
    const glance = (lane, olds, indexes, address, paintColumn) => {
        const columns = [...lane.releases.keys()].slice(-MOST_AT_A_GLANCE)
            .filter((column) => olds[column] !== null && olds[column] !== lane.releases[column].tag);
        const groups = new Map();
        indexes.filter((index) => lane.series[index].numbers.length).forEach((index) => {
            const {question, variant} = lane.series[index];
            const key = JSON.stringify([question, variant]);
            groups.set(key, {question, variant, indexes: [...(groups.get(key) || {indexes: []}).indexes, index]});
        });
        const place = el("div", {id: "glance"}, el("p", {class: "quiet"}, "The largest changes of each variant are being found."));
        const rows = [...groups.values()].map((group) => ({...group, cells: new Map(), total: 0}));
        const draw = () => {
            const head = ["Variant", ...columns.map((column) => ({text: lane.releases[column].tag, class: "tag"}))];
            const open = ({question, variant}) => TH.link("index.html", {...address, question, variant});
            const ordered = rows.sort((a, b) => (a.question < b.question ? -1 : a.question > b.question ? 1 : b.total - a.total));
            place.replaceChildren(TH.table({caption: "The largest change of each variant by release", head, rows: ordered.map((row) => [
                {text: el("a", {href: open(row), title: TH.words(row.question)}, `${TH.words(row.question)}: ${row.variant || "the only one"}`)},
                ...columns.map((column) => glanceCell(lane, column, olds[column], row.cells.get(column))),
            ])}));
            place.firstElementChild.scrollLeft = place.firstElementChild.scrollWidth;
            place.dataset.whole = "true";
        };
        const queue = [...columns];
        const work = () => {
            const until = performance.now() + SLICE;
            while (place.isConnected && queue.length && performance.now() < until) {
                const column = queue.pop();
                compared(lane, olds[column], lane.releases[column].tag);
                paintColumn(column);
                rows.forEach((row) => {
                    const change = largest(lane, row.indexes, column, olds[column]);
                    row.cells.set(column, change);
                    row.total += change ? strength(change) : 0;
                });
            }
            if (!place.isConnected) {
                return;
            }
            if (queue.length) {
                later(work);
            } else {
                draw();
            }
        };
        if (!columns.length || !rows.length) {
            place.replaceChildren();
            return place;
        }
        place.style.minHeight = `${5 + 1.2 * rows.length}rem`;  // what is below stays where it is
        const seen = new IntersectionObserver((entries) => {
            if (entries.some((entry) => entry.isIntersecting)) {
                seen.disconnect();
                later(work);
            }
        });
        seen.observe(place);
        return place;
    };

    const legend = () => {
        const swatch = (kind, level, text, words) => el("li", {},
            el("span", {class: `cell ${kind}${level ? " level-" + level : ""}`, "aria-hidden": "true"}, text), words);
        const bounds = [`up to ${BINS[0]}×`, ...BINS.slice(1).map((bin) => `up to ${bin}×`), "more"];
        const scale = (kind, verdict) => bounds.map((words, i) => swatch(kind, i + 1, TH.sign(verdict), words));
        return el("div", {class: "legend"},
            el("ul", {"aria-label": "Better by a factor of"}, el("li", {}, "Better by"), scale("better", "FASTER")),
            el("ul", {"aria-label": "Worse by a factor of"}, el("li", {}, "Worse by"), scale("worse", "SLOWER")),
            el("ul", {"aria-label": "Other signs"},
               swatch("same", 0, TH.sign("SAME"), "same"),
               swatch("cant-tell", 0, TH.sign("CAN'T TELL"), "inconclusive"),
               swatch("changed", 0, TH.sign("MORE"), "a count changed"),
               swatch("worse", bounds.length, TH.sign("BROKE"), "broke"),
               swatch("better", bounds.length, TH.sign("FIXED"), "fixed"),
               swatch("never-ran", 0, TH.sign("NEVER RAN"), "cannot run there"),
               swatch("alone", 0, "·", "nothing to compare with"),
               swatch("blank", 0, "", "not measured")));
    };

    const map = (lane, address) => {
        const names = new Set(lane.series.map((series) => series.metric));
        const metrics = [...FIRST_METRICS.filter((name) => names.has(name)),
                         ...[...names].filter((name) => !FIRST_METRICS.includes(name)).sort()];
        const questions = [...new Set(lane.series.map((series) => series.question))].sort();
        const usual = metrics.includes("time") ? "time" : "all";
        const metric = address.metric || usual;
        const tags = lane.releases.map((release) => release.tag);
        const base = tags.includes(address.base) ? address.base : null;
        const olds = tags.map((_, i) => base || (i ? tags[i - 1] : null));
        const isIn = (index, question) =>
            lane.series[index].question === question && (!address.variant || lane.series[index].variant === address.variant)
            && (metric === "all" || lane.series[index].metric === metric);
        const rank = (index) => metrics.indexOf(lane.series[index].metric);
        const neverRan = (index) => lane.series[index].numbers.length === 0;
        const wanted = questions.filter((question) => !address.question || question === address.question)
            .map((question) => [question, [...lane.series.keys()].filter((index) => isIn(index, question))
                .sort((a, b) => Number(neverRan(a)) - Number(neverRan(b)) || rank(a) - rank(b))]);
        const rowsOf = (isShown) => wanted.flatMap(([question, indexes]) => {
            const shown = indexes.filter(isShown);
            return shown.length ? [{question}, ...shown.map((index) => ({index}))] : [];
        });
        const all = wanted.flatMap(([, indexes]) => indexes);

        const key = JSON.stringify([lane.id, metric, address.question, address.variant, address.changed]);
        const before = places.get(lane.id) || {};
        const place = before.key === key ? before : {key, left: before.left};
        places.set(lane.id, place);

        const detail = el("p", {id: "map-detail", class: "detail quiet", "aria-live": "polite"},
                          "Point at a cell, or move with the arrow keys, to read its sentence here.");
        const tell = (sentence) => {
            if (detail.textContent !== sentence) {
                detail.classList.remove("quiet");
                detail.textContent = sentence;
            }
        };
        const status = el("p", {id: "map-status", class: "quiet", role: "status"});
        const step = lane.releases.length > 1 ? compared(lane, tags.at(-2), tags.at(-1)).changes : [];
        const times = step.filter((change) => lane.series[change.series].metric === "time" && change.new !== null);
        const isDark = times.length > 0 && times.every((change) => change.kind === "can't tell");
        const hint = metric === "time" && metrics.includes("peak_memory") && isDark && el("p", {},
            "All times of the newest release are inconclusive, but bytes are exact: ",
            el("a", {href: TH.link("index.html", {...address, metric: "peak_memory"})}, "show peak memory"), ".");
        const {region, start, setRows, paintColumn} = grid(lane, olds, metric === "all", tell, place);

        const section = el("section", {"aria-labelledby": "map-title"},
            el("h2", {id: "map-title"}, `Every release against ${base || "the one before it"}`),
            hint,
            el("div", {class: "controls"},
               TH.select("Metric", "metric", [...metrics, "all"].map((name) => [
                   name === usual ? "" : name, name === "all" ? "all metrics" : TH.words(name),
               ]), metric === usual ? "" : metric),
               TH.select("Question", "question", ["", ...questions].map((name) => [
                   name, name ? TH.words(name) : "all questions",
               ]), address.question || ""),
               TH.select("Compared with", "base", [...tags, ""].reverse().map((tag) => [
                   tag, tag || "the release before each",
               ]), base || ""),
               TH.toggle("Only series that changed", "changed", address.changed)),
            address.variant && !wanted.some(([, indexes]) => indexes.length) && el("p", {role: "alert"},
                `There is no variant '${address.variant}' here. `,
                el("a", {href: TH.link("index.html", {...address, variant: null})}, "Show every variant"), "."),
            address.base && !base && el("p", {role: "alert"},
                `There are no results of '${address.base}' here, so each release is compared with the one before it.`),
            legend(), glance(lane, olds, all, {...address, variant: null}, paintColumn),
            address.variant && el("p", {}, `Below is only ${address.variant}. `,
                el("a", {href: TH.link("index.html", {...address, question: null, variant: null})}, "Show every variant")),
            status, el("div", {}, region, detail));

        const open = () => {
            const summary = (count) => `${count} series, ${tags.length} releases.`;
            if (!all.length) {
                status.textContent = "No series has this question and this metric. Choose another one.";
                start([], null);
                return;
            }
            if (!address.changed) {
                status.textContent = summary(all.length);
                start(rowsOf(() => true), null);
                return;
            }
            const seen = new Set();
            const queue = [...tags.keys()].filter((column) => olds[column] !== null && olds[column] !== tags[column]);
            const steps = queue.length;
            const look = (until) => {
                do {
                    const column = queue.pop();
                    if (column !== undefined) {
                        changedBetween(lane, olds[column], tags[column]).forEach((index) => seen.add(index));
                    }
                } while (queue.length && performance.now() < until);
            };
            const say = () => {
                const count = all.filter((index) => seen.has(index)).length;
                status.textContent = `${count} of ${all.length} series changed in ${tags.length} releases`
                    + (queue.length ? `; ${steps - queue.length} of ${steps} comparisons made so far.` : ".");
            };
            let shownAt = performance.now();
            look(shownAt + FIRST_SLICE);
            say();
            start(rowsOf((index) => seen.has(index)), queue.length === 0 ? null : () => {
                look(performance.now() + SLICE);
                if (!queue.length || performance.now() > shownAt + 500) {
                    shownAt = performance.now();
                    say();
                    setRows(rowsOf((index) => seen.has(index)));
                }
                return queue.length > 0;
            });
        };
        return {section, open};
    };

    /* What engineers say, on a CPU and on a GPU: of all machines, whichever is chosen at the top. */
    const claimed = (bases) => el("section", {"aria-labelledby": "claims-title"},
        el("h2", {id: "claims-title"}, el("a", {href: TH.link("claims.html")}, "What engineers say"), ", on a CPU and on a GPU"),
        TH.bases(bases, () => true));

    TH.page({
        title: (lane, address) => `What ${chosen(lane, address).to} changes`,
        needs: async (lane, address) => {
            const {from, to} = chosen(lane, address);
            const known = [from, to].filter((tag) => TH.contents.wheels.includes(tag));
            const wheels = await Promise.all(known.map(async (tag) => [tag, await TH.file(`wheels-${tag}`)]));
            return [Object.fromEntries(wheels), await TH.file("bases")];
        },
        render: (lane, address, main, [wheels, bases]) => {
            const {section, open} = map(lane, address);
            main.append(sheet(lane, address, wheels), section, claimed(bases));
            open();
        },
    });
})();
