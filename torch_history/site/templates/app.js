"use strict";

/* What every page of the site shares: its data, its address, its controls, and elements whose text is never read as HTML. */
(() => {
    /** @type {any} */
    const TH = window.torchHistory = {};

    // --- elements

    const append = (node, child) => {
        if (Array.isArray(child)) {
            child.forEach((each) => append(node, each));
        } else if (child !== null && child !== undefined && child !== false) {
            node.append(child instanceof Node ? child : String(child));
        }
    };

    TH.el = (tag, attributes = {}, ...children) => {
        const node = document.createElement(tag);
        for (const [name, value] of Object.entries(attributes || {})) {
            if (typeof value === "function") {
                node.addEventListener(name, value);
            } else if (value === true) {
                node.setAttribute(name, "");
            } else if (value !== false && value !== null && value !== undefined) {
                node.setAttribute(name, value);
            }
        }
        append(node, children);
        return node;
    };
    const el = TH.el;
    TH.svg = (tag, attributes, ...children) => {
        const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
        Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
        node.append(...children);
        return node;
    };

    /** Details whose content `make` gives, once, when they are opened. Where that fails they say why, and it is asked for again
        when they are opened again. */
    TH.lazy = (attributes, summary, make) => {
        const place = el("div", {});
        const node = el("details", attributes, el("summary", {}, summary), place);
        let isAsked = false;
        const fill = async () => {
            isAsked = true;
            place.replaceChildren(el("p", {}, "This is being loaded."));
            try {
                const made = await make();
                place.replaceChildren(el("div", {}, made));
            } catch (error) {
                isAsked = false;
                place.replaceChildren(el("p", {role: "alert"}, error.message));
            }
        };
        node.addEventListener("toggle", () => node.open && !isAsked && fill());
        return node;
    };
    TH.folded = (id, summary, ...children) => el("details", {id}, el("summary", {}, summary), children);
    TH.sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
    TH.words = (name) => String(name).replaceAll("_", " ");
    TH.human = (value, unit) => TH.common.human(value, unit);

    const SIGNS = {worse: "▲", better: "▼", changed: "◆", "can't tell": "?", same: "=", "never ran": "–"};
    const OWN_SIGNS = {BROKE: "✕", FIXED: "✓"};
    TH.kind = (verdict) => TH.contents.kinds[verdict];
    TH.sign = (verdict) => OWN_SIGNS[verdict] || SIGNS[TH.kind(verdict)];
    TH.classOf = (verdict) => TH.kind(verdict).replace("'", "").replace(" ", "-");
    TH.shown = (verdict) => TH.contents.shown[verdict] || verdict;
    TH.mark = (verdict) => el("span", {class: `verdict ${TH.classOf(verdict)}`},
                              el("span", {"aria-hidden": "true"}, `${TH.sign(verdict)} `), TH.shown(verdict));

    TH.device = (lane) => lane.machine.device || "cpu";
    TH.laneWords = (lane) => TH.contents.lanes.find((each) => each.id === lane.id).words;
    /** The tag that a person means by `v2.3.1`, `2.3.1` or `2.3.1+cu121`; what names none of these stays as it is.
        @param {string[]} tags @param {string} text */
    TH.tagOf = (tags, text) => {
        const plain = `v${String(text).replace(/^v/u, "").split("+")[0]}`;
        return tags.includes(plain) ? plain : text;
    };
    /** The tags next to what names none of them, the older one first. @param {string[]} tags oldest first @param {string} text */
    TH.beside = (tags, text) => {
        const number = (/** @type {string} */ of) => [0, 1, 2].reduce((sum, at) => 1000 * sum + Number((of.match(/\d+/gu) || [])[at] || 0), 0);
        const found = [tags.findLast((tag) => number(tag) <= number(text)), tags.find((tag) => number(tag) > number(text))];
        return /^v?\d/u.test(text) ? found.filter(Boolean) : [];
    };
    /** The two releases of an address, the older one first: `to` is the newest where it is not said, `from` the one before.
        @param {any} lane @param {{from?: string, to?: string}} address */
    TH.chosen = (lane, address) => {
        const tags = lane.releases.map(({tag}) => tag);
        const to = address.to ? TH.tagOf(tags, address.to) : tags.at(-1);
        const from = address.from ? TH.tagOf(tags, address.from) : tags[tags.indexOf(to) - 1] || null;
        return tags.includes(to) && tags.indexOf(from) > tags.indexOf(to) ? {from: to, to: from} : {from, to};
    };
    /** A command as a shell takes it, whatever somebody called a machine. @param {string[]} words */
    TH.command = (...words) => el("code", {}, ["torch-history", ...words]
        .map((word) => (/^[\w@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`)).join(" "));
    /** How a lane's releases are measured, behind the words that lead to it; null where they cannot be installed for its Python,
        or where they come from a kit or an installation. @param {any} lane @param {string} words @param {string[]} tags */
    TH.measure = (lane, words, ...tags) => {
        const [, python] = /^release-py(.+)$/u.exec(lane.environment) || [];
        const {device, card} = lane.machine;
        const isPossible = python && tags.every((tag) => (TH.contents.pythons[tag] || []).includes(python));
        const more = device === "recorder" ? ["--device", device, "--card", card] : [];
        const names = tags.map((tag) => tag.replace(/^v/u, ""));
        return isPossible && [words, TH.command("run", "--lane", python, ...more, ...names)];
    };
    TH.name = ({question, metric, parameters}) =>
        `${TH.words(question)} ${TH.words(metric)}, ${parameters.join(" ")}`.trimEnd();
    /** @param {string} table @param {string} question @param {string} name */
    const labelOf = (table, question, name) => ((TH.contents.labels[question] || {})[table] || {})[name] || "";
    /** What a variant, and what a size is, in words of code; empty where nobody said it. */
    TH.meaning = ({question, variant}) => labelOf("variants", question, variant);
    TH.sized = ({question, size}) => labelOf("sizes", question, size);
    /** A series in words of code, as labels.named() of Python has it. */
    TH.inCode = (series) => {
        const size = TH.sized(series) || series.size;
        return (TH.meaning(series) || series.variant || TH.words(series.question)) + (size ? ` (${size})` : "");
    };
    TH.questionWords = (question) => (TH.contents.labels[question] || {}).question || TH.words(question);
    TH.varies = ({metric}) => (TH.contents.metrics[metric] || [])[1] || false;
    TH.prose = (text) => String(text).split("`").map((part, i) => i % 2 ? el("code", {}, part) : part);

    /* Words that prose uses and the glossary defines, each by itself; tests hold them to docs/glossary.md. */
    const TERMS = ["lane", "session", "round", "launch", "margin", "interval", "inconclusive", "series", "step", "excursion", "drift"];
    const TERM = new RegExp(`\\b(${TERMS.join("|")})(e?s)?\\b`, "giu");
    /** Prose in which each word of the glossary leads there where it first stands. @param {string} text */
    TH.explained = (text) => {
        const known = new Set();
        return String(text).split("`").map((part, i) => {
            if (i % 2) {
                return el("code", {}, part);
            }
            let end = 0;
            const pieces = [...part.matchAll(TERM)].flatMap((match) => {
                const term = match[1].toLowerCase();
                if (known.has(term)) {
                    return [];
                }
                known.add(term);
                const before = part.slice(end, match.index);
                end = match.index + match[0].length;
                return [before, el("a", {class: "term", href: TH.method(`word-${term}`)}, match[0])];
            });
            return [...pieces, part.slice(end)];
        });
    };
    /** Verdicts and how many there are of each, what costs first. @param {Iterable<[string, number]>} counts */
    TH.inOrder = (counts) => {
        const kinds = Object.keys(SIGNS);
        return [...counts].sort(([a], [b]) => kinds.indexOf(TH.kind(a)) - kinds.indexOf(TH.kind(b)) || (a < b ? -1 : 1));
    };
    TH.tally = (changes) => TH.inOrder(TH.common.counted(changes.map(({verdict}) => verdict)));

    // --- data

    const received = new Map();
    const lanes = new Map();

    TH.receive = (id, data) => {
        received.set(id, data);
        TH.contents = received.get("index");
    };
    /* What build.py compressed; of anything else itself. */
    const inflated = (packed) => {
        if (typeof packed !== "string") {
            return packed;
        }
        const text = atob(packed);
        const bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i += 1) {
            bytes[i] = text.charCodeAt(i);
        }
        return new Response(new Response(bytes).body.pipeThrough(new DecompressionStream("deflate"))).json();
    };
    const run = (address, isDone = () => true) => new Promise((resolve, reject) => {
        const refused = () => reject(new Error(`The file ${address} is missing or damaged: publish the site again.`));
        const src = address.split("/").map(encodeURIComponent).join("/");
        document.head.append(el("script", {src, load: () => (isDone() ? resolve() : refused()), error: refused}));
    });
    const loaded = async (id) => {
        const name = id.split("/").at(-1);
        const isHere = () => received.has(name);  // some come with the page: build.py puts them into first.js
        if (!isHere()) {
            await run(`data/${id}.js`, isHere);
        }
        return inflated(received.get(name));
    };

    /* What `load` gave; a file that failed is asked for again. */
    const once = (known, id, load) => {
        if (!known.has(id)) {
            known.set(id, load());
            known.get(id).catch?.(() => known.delete(id));
        }
        return known.get(id);
    };
    const bared = new Map();
    const bare = (parameter) => once(bared, parameter, () => parameter.replace(/^'+|'+$/gu, ""));
    /* What a series is, of asv's names: as the file of numbers has it. */
    const seriesOf = ([benchmark, ...parameters]) => {
        const plain = parameters.map(bare);
        const metric = benchmark.split("track_").at(-1);
        return {benchmark, question: benchmark.split(".")[0], metric, parameters: plain, variant: plain[0] || "",
                size: plain.slice(1).join(" "), unit: (TH.contents.metrics[metric] || [""])[0]};
    };
    TH.lane = (id) => once(lanes, id, async () => {
        const about = await loaded(id);
        return {...about, series: about.series.map(seriesOf)};
    });

    /* Other files of data/, each loaded when a page asks for it first. */
    const others = new Map();
    TH.file = (name) => once(others, name, () => loaded(name));
    /** Runs scripts that a page needs once its first part is painted. @param {string[]} names */
    TH.scripts = (...names) => Promise.all(names.map((name) => once(others, name, () => run(name))));

    /* A lane with all that was measured, launch by launch. */
    TH.measured = async (lane) => ({...lane, ...await TH.file(`${lane.id}-numbers`)});

    /* What Python told of two releases, its changes as rows; null where the lane has not both. */
    TH.pair = async (lane, from, to) => {
        const tags = lane.releases.map(({tag}) => tag);
        if (from === to || !tags.includes(from) || !tags.includes(to)) {
            return null;
        }
        const told = await TH.file(`pairs/${lane.id}-${from}-${to}`);
        const {verdicts, reasons, causes, ...columns} = told.changes;
        const rows = columns.series.map((place, i) => ({
            place, series: lane.series[place], verdict: verdicts[columns.verdict[i]], kind: TH.kind(verdicts[columns.verdict[i]]),
            old: columns.old[i], new: columns.new[i], ratio: columns.ratio[i], low: columns.low[i], high: columns.high[i],
            reason: reasons[columns.reason[i]], why: causes[columns.why[i]],
        }));
        return {...told, rows, byPlace: new Map(rows.map((row) => [row.place, row]))};
    };

    /* What happened to the series of the benchmarks given, or of all, newest first. */
    TH.steps = async (lane, benchmarks = null) => {
        const steps = (await TH.file(`${lane.id}-steps`)).map((step, place) => ({...step, place}));
        return steps.filter(({series}) => !benchmarks || benchmarks.includes(lane.series[series].benchmark));
    };

    /* The claims, each with its `answers` on every release. */
    TH.claims = (lane) => TH.file(`${lane.id}-claims`);

    // --- the address

    const write = (keys) => {
        const kept = Object.entries(keys).filter(([, value]) => value !== null && value !== undefined && value !== "");
        return kept.map((pair) => pair.map(encodeURIComponent).join("=")).join("&").replaceAll("%20", "+");
    };
    let read = {text: "", keys: {}};
    TH.address = () => {
        const text = location.hash.slice(1) || location.search;
        read = text === read.text ? read : {text, keys: Object.fromEntries(new URLSearchParams(text))};
        return read.keys;
    };
    TH.go = (changes, {replace = false} = {}) => {
        const fragment = `#${write({...TH.address(), ...changes})}`;
        if (replace) {
            location.replace(fragment);
        } else {
            location.hash = fragment;
        }
    };
    /** Notes what the reader opened in the address, without drawing the page again. */
    TH.keep = (changes) => {
        history.replaceState(null, "", `#${write({...TH.address(), ...changes})}`);
        document.body.dataset.ready = location.hash || "#";
    };
    /* The two releases that were chosen stay so on the way to another page. */
    TH.link = (page, keys = {}) => {
        const {from, to} = TH.address();
        return `${page}#${write({lane: current, from, to, ...keys})}`;
    };
    /* A place on the page on method, which leads back to what was chosen. */
    TH.method = (place) => {
        const {from, to} = TH.address();
        return `method.html?${write({lane: current, from, to})}#${place}`;
    };
    let current = "";

    /** The history of a series, with two releases marked. */
    TH.historyOf = ({benchmark, size, variant}, {from, to}, keys = {}) => TH.link("series.html", {benchmark, size, variant, release: to, base: from, from, to, ...keys});

    // --- controls

    const labelled = (label, control, ...more) => el("label", {}, el("span", {}, label), control, ...more);
    const option = ([value, text], chosen) => el("option", {value, selected: String(value) === String(chosen)}, text);

    /* Someone who types a choice, such as v2.3.1, passes others on the way: the page is drawn again when they pause. */
    const TYPING = 700;
    TH.select = (label, name, options, value) => {
        let [typed, timer] = [-Infinity, 0];
        const choose = (event) => {
            const chosen = () => TH.go({[name]: event.target.value});
            clearTimeout(timer);
            if (performance.now() - typed < TYPING) {
                timer = setTimeout(chosen, TYPING);
            } else {
                chosen();
            }
        };
        return labelled(label, el("select", {
            id: `choose-${name}`, name, change: choose,
            keydown: ({key}) => {
                typed = key.length === 1 ? performance.now() : -Infinity;
            },
        }, options.map((each) => each.group
            ? el("optgroup", {label: each.group}, each.options.map((inner) => option(inner, value)))
            : option(each, value))));
    };

    TH.search = (label, name, value) => {
        let timer = 0;
        return labelled(label, el("input", {
            id: `choose-${name}`, name, type: "search", value: value || "", autocomplete: "off",
            input: (event) => {
                clearTimeout(timer);
                timer = setTimeout(() => TH.go({[name]: event.target.value}, {replace: true}), 150);
            },
        }));
    };

    TH.toggle = (label, name, on) => el("label", {class: "toggle"}, el("input", {
        id: `choose-${name}`, name, type: "checkbox", checked: Boolean(on),
        change: (event) => TH.go({[name]: event.target.checked ? "1" : null}),
    }), el("span", {}, label));

    TH.table = ({caption, head, rows}) => {
        const cell = (value, tag, scope) => {
            const plain = value === null || value === undefined || typeof value !== "object" || value instanceof Node
                || Array.isArray(value);
            const {text, class: name, ...attributes} = plain ? {text: value} : value;
            return el(tag, {scope, class: name, ...attributes}, text);
        };
        const row = ([first, ...rest]) => el("tr", {}, cell(first, "th", "row"), rest.map((value) => cell(value, "td")));
        return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
                  el("table", {}, el("caption", {class: "unseen"}, caption),
                     el("thead", {}, el("tr", {}, head.map((value) => cell(value, "th", "col")))),
                     el("tbody", {}, rows.map(row))));
    };

    TH.copy = async (text, button) => {
        button.parentNode.querySelectorAll(".copied, .to-copy").forEach((node) => node.remove());
        const said = el("span", {class: "copied quiet", "aria-live": "polite"});
        button.after(said);
        try {
            await navigator.clipboard.writeText(text);
            said.textContent = "Copied.";
        } catch {
            const area = el("textarea", {class: "to-copy", readonly: true, rows: 8, "aria-label": "Text to copy"});
            area.value = text;
            said.textContent = "This browser cannot copy by itself. The text is selected. Copy it with Ctrl+C.";
            said.after(area);
            area.focus();
            area.select();
        }
    };

    // --- the page

    const caretOf = (node) => {
        try {
            return node.selectionStart;
        } catch {
            return null;
        }
    };

    const keepingPlace = async (action) => {
        const focused = document.activeElement;
        const {id} = focused || {};
        const caret = id ? caretOf(focused) : null;
        const scrolled = window.scrollY;
        await action();
        const again = id && document.getElementById(id);
        if (again && again !== document.activeElement) {
            again.focus({preventScroll: true});
            if (caret !== null && again instanceof HTMLInputElement) {
                again.setSelectionRange(caret, caret);
            }
        }
        if (scrolled) {  // setting it to 0 again would lay out the whole page before it is painted
            window.scrollTo({top: scrolled, behavior: "instant"});
        }
    };

    const HERE = "the machine that published this site";
    const pickLane = (chosen) => {
        /* What the person who published the site has measured stands first, and apart from what others did. */
        const isHere = ({machine}) => machine === TH.contents.here;
        const listed = (known) => known.map((lane) => [lane.id, lane.words]);
        const here = TH.contents.lanes.filter(isHere);
        const elsewhere = listed(TH.contents.lanes.filter((lane) => !isHere(lane)));
        const options = here.length === 0 ? elsewhere : [{group: HERE, options: listed(here)},
                                                         {group: "other machines", options: elsewhere}];
        const where = here.some(({id}) => id === chosen) ? ` ${HERE}` : "";
        const wasFocused = document.activeElement?.id === "choose-lane";
        const choice = TH.select(`Measured on${where}`, "lane", options, chosen);
        document.getElementById("lane").replaceChildren(choice);
        if (wasFocused) {
            choice.querySelector("select").focus({preventScroll: true});
        }
        document.querySelectorAll("nav a[data-page]").forEach((/** @type {HTMLAnchorElement} */ link) => {
            link.href = TH.link(link.dataset.page);
        });
    };

    /* `needs` gives what else of the lane must be loaded before a page is drawn; `render` gets it last. `arrive` leads to
       what the address names within the page, once it is drawn for the first time. */
    /** @param {{title: Function, render: Function, needs?: Function, needsLane?: boolean, arrive?: Function}} page */
    TH.page = ({title, render, needs = () => null, needsLane = true, arrive = () => null}) => {
        const content = document.getElementById("content");
        let turn = 0;
        let isDrawn = false;
        const show = async (mine) => {
            const address = TH.address();
            const known = TH.contents.lanes.find((lane) => lane.id === address.lane);
            current = (known || TH.contents.lanes[0]).id;
            document.getElementById("lane").hidden = !needsLane;
            const lane = !needsLane ? {} : address.lane && !known ? null : await TH.lane(current);
            const more = lane && await needs(lane, address);
            if (mine !== turn) {
                return;
            }
            pickLane(current);  // with all the rest: the page is laid out once
            await keepingPlace(async () => {
                content.replaceChildren();
                if (lane === null) {
                    content.append(el("p", {role: "alert"}, `There are no results of '${address.lane}' here: `,
                                      "choose what was measured at the top of the page."));
                    return;
                }
                document.title = `${title(lane, address)} · torch-history`;
                await render(lane, address, content, more);
            });
            if (mine !== turn) {
                return;
            }
            if (!isDrawn) {
                isDrawn = true;
                arrive(address);
            }
            document.body.dataset.ready = location.hash || "#";
        };
        const shown = () => {
            const mine = turn += 1;
            return show(mine).catch((error) => {
                if (mine === turn) {  // else the reader has asked for something else since
                    content.replaceChildren(el("p", {role: "alert"}, error.message));
                    pickLane(current);
                    throw error;
                }
            });
        };
        document.querySelector("[data-skip]").addEventListener("click", (event) => {
            event.preventDefault();
            document.getElementById("main").focus();
        });
        window.addEventListener("hashchange", shown);
        shown();
    };
})();
