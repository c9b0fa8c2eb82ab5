"use strict";

/* Does what engineers say hold, on which release, and what follows for today? */
(() => {
    const TH = window.torchHistory;
    const H = TH.history;
    const {el} = TH;

    const MOST_COLUMNS = 60;
    const LEAST_FOR_LABEL = 0.16;  // of the strip's width: a release's name fits at 360 px
    const SIGNS = {
        "holds": ["●", "holds"],
        "holds in part": ["◐", "in-part"],
        "does not hold": ["○", "fails"],
        "inconclusive": ["?", "unknown"],
        "not measured": ["–", "unknown"],
    };

    const sign = (word) => {
        const [symbol, name] = SIGNS[word];
        return el("span", {class: `answer ${name}`}, el("span", {"aria-hidden": "true"}, `${symbol} `), word);
    };

    /* Details whose content is made when they are opened. */
    const folded = (summary, content) => el("details", {toggle: ({target}) => {
        if (target.open && target.childElementCount === 1) {
            target.append(el("div", {}, content()));
        }
    }}, el("summary", {}, summary));

    /* Neighbouring releases of one answer. */
    const runsOf = (answers) => answers.reduce((runs, {release, word}) => {
        const last = runs.at(-1);
        if (last && last.word === word) {
            last.to = release;
            last.count += 1;
        } else {
            runs.push({word, from: release, to: release, count: 1});
        }
        return runs;
    }, []);

    /* A colour per release, the first release of each answer below it where it has room, and the same in words. */
    const strip = ({words, answers}, everyColumn) => {
        const shown = everyColumn ? answers : answers.slice(-MOST_COLUMNS);
        const runs = runsOf(shown);
        const columns = `grid-template-columns: repeat(${shown.length}, minmax(0, 1fr))`;
        const cells = shown.map(({release, word}, i) => el("span", {
            class: `cell ${SIGNS[word][1]}${i && shown[i - 1].word !== word ? " turn" : ""}`, title: `${release}: ${word}`,
        }));
        const labels = runs.filter(({count}) => count >= LEAST_FOR_LABEL * shown.length)
            .map(({from, count}) => {
                const start = shown.findIndex(({release}) => release === from) + 1;
                return el("span", {class: "label", style: `grid-column: ${start} / span ${count}`}, from);
            });
        const link = (release) => el("a", {href: TH.link("release.html", {release})}, release);
        return el("div", {class: "strip"},
            el("div", {class: "cells", style: columns, "aria-hidden": "true"}, cells),
            el("div", {class: "cells", style: columns, "aria-hidden": "true"}, labels),
            el("ol", {class: "runs", "aria-label": `${words}: the answer of each release`}, runs.map(({word, from, to, count}) =>
                el("li", {}, sign(word), " ", link(from), count > 1 && [" to ", link(to)]))));
    };

    const picture = (lane, {benchmark, size: asked, variants}) => {
        const sizes = lane.series.filter((series) => series.benchmark === benchmark).map(({size}) => size);
        const size = sizes.includes(asked) ? asked : sizes[0];
        const all = H.members(lane, benchmark, size);
        const shown = all.filter(({variant}) => variants.includes(variant)).map((member, slot) => ({...member, slot}));
        if (!shown.some(({cells}) => cells.some((cell) => cell && cell.numbers))) {
            return el("p", {}, "There is no number to draw here.");
        }
        const {metric, question, unit} = shown[0].series;
        const name = [`${TH.words(question)}: ${TH.words(metric)}`, size].filter(Boolean).join(", ");
        const label = `${name} by release on ${TH.laneWords(lane)}. The same numbers are in the table that unfolds below.`;
        const closer = {benchmark, size, variants: shown.map(({variant}) => encodeURIComponent(variant)).join(",")};
        return [
            el("h3", {}, name),
            H.legend(shown),
            H.figure(lane, all, shown, {y: unit === "seconds" ? "log" : "linear", label}),
            folded("The numbers as a table", () =>
                H.table(lane, all, shown, {most: MOST_COLUMNS, caption: `${name} by variant and release`}).nodes),
            el("p", {}, el("a", {href: TH.link("series.html", closer)}, "The series in detail")),
        ];
    };

    const turns = (claim) => claim.turns.length > 0 && [
        el("h3", {}, "When and why the answer changed"),
        el("ul", {class: "turns"}, claim.turns.map(({new: release, before, after, why}) => el("li", {},
            el("a", {href: TH.link("release.html", {release})}, release), ": ", sign(before), " → ", sign(after), ". ", why,
        ))),
    ];

    const sentences = ({answers}) => folded(`The numbers behind each of ${answers.length} answers`, () =>
        el("dl", {class: "answers"}, [...answers].reverse().map(({release, word, sentence}) => [
            el("dt", {}, release, " ", sign(word)), el("dd", {}, sentence),
        ])));

    const section = (lane, claim, address, bases) => {
        const {answers, question, words} = claim;
        const tags = answers.map(({release}) => release);
        const at = (text) => answers.find(({release}) => release === TH.tagOf(tags, text));
        const shown = at(address.to) || answers.at(-1);
        const before = at(address.from);
        const isNewest = shown === answers.at(-1);
        const id = `claim-${question}`;
        const hidden = address.columns ? 0 : answers.length - MOST_COLUMNS;
        return el("section", {class: "claim", "aria-labelledby": id}, el("h2", {id}, words),
            TH.bases(bases, ({question: of}) => of === question), shown ? [
            el("p", {class: "summary"}, isNewest ? "Today: " : `On ${shown.release}: `, sign(shown.word), ". ", claim.summary),
            el("div", {class: "panel"}, el("h3", {}, `Advice for ${shown.release}${isNewest ? ", the newest release" : ""}`),
               el("p", {}, TH.prose(shown.advice))),
            before && before !== shown && el("p", {}, el("strong", {}, `${before.release}: `), sign(before.word), ". ", before.sentence),
            el("p", {}, el("strong", {}, `${shown.release}: `), shown.sentence),
            strip(claim, address.columns),
            hidden > 0 && el("p", {class: "quiet"}, `${hidden} older releases are not shown.`),
            turns(claim),
            claim.picture && picture(lane, claim.picture),
            sentences(claim),
        ] : el("p", {}, `Nothing was measured on ${TH.laneWords(lane)} that answers this.`));
    };

    const render = (lane, address, main, [claims, bases]) => {
        const most = Math.max(0, ...claims.map(({answers}) => answers.length));
        const tags = lane.releases.map(({tag}) => tag);
        const strangers = [address.from, address.to].filter((text) => text && !tags.includes(TH.tagOf(tags, text)));
        const everyColumn = `all ${most} releases, not the newest ${MOST_COLUMNS} alone`;
        main.append(el("div", {},
            !claims.length && el("p", {}, `Nothing was measured on ${TH.laneWords(lane)} that answers any of the `
                                      + "claims: choose another machine at the top."),
            claims.length > 0 && el("p", {}, `Measured on ${TH.laneWords(lane)}. `,
                el("a", {href: "method.html#glossary"}, "What the words mean"), "."),
            claims.length > 0 && el("div", {class: "controls"},
                TH.select("Advice for", "to", [...lane.releases].reverse().map(({tag}) => [tag, tag]),
                          strangers.includes(address.to) || !address.to ? tags.at(-1) : TH.tagOf(tags, address.to)),
                most > MOST_COLUMNS && TH.toggle(everyColumn, "columns", address.columns)),
            strangers.map((each) => el("p", {role: "alert"}, `There are no results of '${each}' here`,
                each === address.to && `: this is ${tags.at(-1)}`, ".")),
            claims.map((claim) => section(lane, claim, address, bases))));
    };

    const needs = (lane) => Promise.all([TH.claims(lane), TH.file("bases")]);
    TH.page({title: () => "Claims", needs, render});
})();
