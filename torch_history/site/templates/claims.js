"use strict";

/* Does what engineers say hold, on which release, and what follows for today? */
(() => {
    const TH = window.torchHistory;
    const H = TH.history;
    const {el} = TH;

    const MOST_COLUMNS = 60;
    let sought = TH.address().claim;  // until its picture is drawn
    const arrive = () => document.getElementById(`claim-${sought}`)?.scrollIntoView({behavior: "instant"});
    const sign = TH.answer;

    /* The answers in words, and when each began. */
    const runs = ({words, answers}, everyColumn) => {
        const shown = everyColumn ? answers : answers.slice(-MOST_COLUMNS);
        const link = (release) => el("a", {href: TH.link("release.html", {release})}, release);
        return el("ol", {class: "runs", "aria-label": `${words}: the answer of each release`}, TH.runs(shown).map(({word, from, to, count}) =>
            el("li", {}, sign(word), " ", link(from), count > 1 && [" to ", link(to)])));
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
            TH.lazy({}, "The numbers as a table", () =>
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

    const sentences = ({answers}) => TH.lazy({}, answers.length === 1 ? "The numbers behind the one answer" : `The numbers behind each of ${answers.length} answers`, () =>
        el("dl", {class: "answers"}, [...answers].reverse().map(({release, word, sentence}) => [
            el("dt", {}, release, " ", sign(word)), el("dd", {}, sentence),
        ])));

    /* What one machine says, in detail; its picture needs all numbers, which are loaded when it is opened. */
    const detail = (lane, claim, address) => {
        const {answers, question} = claim;
        const tags = answers.map(({release}) => release);
        const at = (text) => answers.find(({release}) => release === TH.tagOf(tags, text));
        const shown = at(address.to) || answers.at(-1);
        const before = at(address.from);
        if (!shown) {
            return el("p", {class: "quiet"}, `Nothing was measured on ${TH.laneWords(lane)} that answers this.`);
        }
        const place = el("div", {});
        const failed = (error) => place.replaceChildren(el("p", {role: "alert"}, error.message));
        const draw = async () => {
            const measured = await TH.measured(lane);
            place.replaceChildren(el("div", {}, claim.picture && picture(measured, claim.picture)));
            if (sought === question) {
                arrive();
                sought = null;
            }
        };
        const hidden = address.columns ? 0 : answers.length - MOST_COLUMNS;
        return el("details", {open: address.claim === question, toggle: ({target}) => target.open && !place.childElementCount && draw().catch(failed)},
            el("summary", {}, `${shown.release} on ${TH.laneWords(lane)}: `, sign(shown.word), ". ", claim.summary !== TH.sentence(shown.word) && claim.summary),
            before && before !== shown && el("p", {}, el("strong", {}, `${before.release}: `), sign(before.word), ". ", before.sentence),
            el("p", {}, el("strong", {}, `${shown.release}: `), sign(shown.word), ". ", shown.sentence),
            el("p", {}, el("strong", {}, "Advice: "), TH.prose(shown.advice)),
            runs(claim, address.columns),
            hidden > 0 && el("p", {class: "quiet"}, hidden === 1 ? "One older release is not shown." : `${hidden} older releases are not shown.`),
            turns(claim), place, sentences(claim));
    };

    const section = (lane, of, address, {bases, claims, advised}) => {
        const claim = claims.find(({question}) => question === of.question);
        const id = `claim-${of.question}`;
        return el("section", {class: "claim", "aria-labelledby": id}, el("h2", {id}, of.words),
            TH.bands(bases, of), TH.span(bases.releases),
            el("dl", {class: "advice"}, ["CPU", "GPU"].map((device, i) => [device, advised[of.question][i]]).map(([device, said]) => [el("dt", {}, device), el("dd", {}, TH.prose(said))])),
            el("details", {}, el("summary", {}, "The same in words, by device"), el("ul", {class: "sentence-list"}, of.cells.map((said, i) =>
                el("li", {}, el("strong", {}, `${bases.columns[i]}: `), TH.prose(said))))),
            claim ? detail(lane, claim, address) : el("p", {class: "quiet"}, `Nothing was measured on ${TH.laneWords(lane)} that answers this.`));
    };

    const render = (lane, address, main, [claims, bases, advice]) => {
        const most = Math.max(0, ...claims.map(({answers}) => answers.length));
        const tags = lane.releases.map(({tag}) => tag);
        const strangers = [address.from, address.to].filter((text) => text && !tags.includes(TH.tagOf(tags, text)));
        const chosen = strangers.includes(address.to) || !address.to ? tags.at(-1) : TH.tagOf(tags, address.to);
        const advised = Object.fromEntries(Object.entries(advice).map(([question, of]) => [question, of[chosen]]));
        const everyColumn = `all ${most} releases, not the newest ${MOST_COLUMNS} alone`;
        main.append(el("div", {},
            TH.answersKey(),
            claims.length > 0 && el("p", {}, `Measured on ${TH.laneWords(lane)}. `,
                el("a", {href: TH.method("glossary")}, "What the words mean"), "."),
            claims.length > 0 && el("div", {class: "controls"},
                TH.select("Advice for", "to", [...lane.releases].reverse().map(({tag}) => [tag, tag]), chosen),
                most > MOST_COLUMNS && TH.toggle(everyColumn, "columns", address.columns)),
            strangers.map((each) => el("p", {role: "alert"}, `There are no results of '${each}' here`,
                each === address.to && `: this is ${tags.at(-1)}`, ".")),
            bases.claims.map((claim) => section(lane, claim, address, {bases, claims, advised}))));
    };

    const needs = (lane) => Promise.all([TH.claims(lane), TH.file("bases"), TH.file("advice")]);
    TH.page({title: () => "Claims", needs, render, arrive});
})();
