"use strict";

/* A small chart of each question over all releases, what its claim's answers were on each device, and what to do. */
(() => {
    const TH = window.torchHistory;
    const {el, svg} = TH;

    const [WIDTH, HEIGHT, EDGE] = [360, 92, 4];
    const ANSWERS = {
        "holds": "holds", "holds in part": "in-part", "does not hold": "fails", "inconclusive": "unknown", "not measured": "none",
    };
    const SIGNS = {"holds": "●", "holds in part": "◐", "does not hold": "○", "inconclusive": "?", "not measured": "–"};

    /** An answer, with the colour that it has everywhere. @param {string} word */
    TH.answer = (word) => el("span", {class: "answer"}, el("span", {class: `cell ${ANSWERS[word]}`, "aria-hidden": "true"}, SIGNS[word]), " ", word);

    /* A line through neighbours; a point by itself is a dash, as a line of no length is not seen. */
    const path = (points) => points.map((point, i) => {
        const [x, y] = (point || []).map((place) => place.toFixed(1));
        return !point ? "" : points[i - 1] ? `L${x},${y}` : points[i + 1] ? `M${x},${y}` : `M${x},${y}m-4,0h8`;
    }).join("");

    /** Lines of variants over `tags`: `lines` are [name, numbers of `releases`], `marked` tags have a rule. */
    TH.sparkline = ({tags, releases, lines, marked, height = HEIGHT, colours = true, label}) => {
        const numbers = lines.flatMap(([, of]) => of).filter((number) => number > 0);
        const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
        const room = Math.max(Math.log(high / low), Math.log(1.2));
        const middle = (Math.log(high) + Math.log(low)) / 2;
        const x = (tag) => (tags.indexOf(tag) + 0.5) * WIDTH / tags.length;
        const y = (number) => height / 2 - (Math.log(number) - middle) / room * (height - 4 * EDGE);
        return svg("svg", {viewBox: `0 0 ${WIDTH} ${height}`, class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none"},
            ...marked.filter((tag) => tags.includes(tag)).map((tag) => svg("line", {class: "rule", x1: x(tag), x2: x(tag), y1: 0, y2: height})),
            ...lines.map(([, of], slot) => svg("path", {class: colours ? `line series-${slot % 8}` : "line plain",
                d: path(of.map((number, i) => (number > 0 ? [x(releases[i]), y(number)] : null)))})));
    };

    /** Neighbouring releases of one answer. @param {{release: string, word: string}[]} answers */
    TH.runs = (answers) => answers.reduce((runs, {release, word}) => {
        const last = runs.at(-1);
        if (last && last.word === word) {
            last.to = release;
            last.count += 1;
        } else {
            runs.push({word, from: release, to: release, count: 1});
        }
        return runs;
    }, []);

    /* A row of cells, one per release, in the colour of the answer there. */
    const band = (tags, of, name, told) => {
        const runs = TH.runs(tags.map((release) => ({release, word: of[release] || "not measured"})));
        return el("div", {class: "band"}, el("span", {class: "band-name"}, name),
                  el("span", {class: "cells", role: "img", "aria-label": `${name}: ${told}`, title: told},
                     runs.map(({word, from, to, count}) => el("span", {title: `${word}, ${from} to ${to}`, class: `cell ${ANSWERS[word]}`, style: `flex: ${count}`}, word === "inconclusive" && SIGNS[word]))));
    };

    /** The answers of each basis over all releases. @param {any} bases @param {any} claim */
    TH.bands = ({releases, columns}, {bands, cells}) => bands.map((of, i) => band(releases, of, columns[i], cells[i]));

    /** The first, the middle and the last of releases, below bands. @param {string[]} tags */
    TH.span = (tags) => el("div", {class: "band"}, el("span", {}), el("span", {class: "ends"},
        [tags[0], tags[Math.round((tags.length - 1) / 2)], tags.at(-1)].map((tag) => el("span", {}, tag))));

    /** @param {any} lane @param {any} bases what data/bases.js holds @param {string[]} marked */
    TH.questionCharts = (lane, {releases: tags, columns, claims}, marked) => el("div", {class: "questions"}, claims.map((claim) => {
        const lines = claim.lines.find(({lane: id}) => id === lane.id)
            || claim.lines.find(({lane: id}) => TH.contents.lanes.some((other) => other.id === id && other.device === TH.device(lane))) || claim.lines[0];
        const series = lines && {question: claim.question, size: lines.size, metric: lines.metric};
        const isOther = lines && lines.lane !== lane.id && TH.contents.lanes.find(({id}) => id === lines.lane);
        const what = lines && `${TH.words(lines.metric)}, ${TH.sized(series) || lines.size}`;
        const named = lines ? Object.entries(lines.numbers) : [];
        const extremes = named.flatMap(([, of]) => of).filter((number) => number > 0);
        const range = extremes.length ? [Math.min(...extremes), Math.max(...extremes)].map((number) => TH.human(number, lines.unit)) : [];
        return el("section", {class: "question", "aria-labelledby": `small-${claim.question}`},
            el("h3", {id: `small-${claim.question}`}, el("a", {href: TH.link("claims.html", {claim: claim.question})}, claim.words)),
            lines && [
                el("p", {class: "what quiet"}, what, isOther && `, on ${isOther.words}`),
                el("div", {class: "drawn"}, el("span", {class: "range"}, el("span", {}, range[1] || ""), el("span", {}, range[0] || "")),
                   el("a", {href: TH.link("series.html", {benchmark: lines.benchmark, size: lines.size, lane: lines.lane}), "aria-label": `${what}: its history`},
                   TH.sparkline({tags, releases: lines.releases, lines: named, marked, label: `${what} by release`}))),
                el("ul", {class: "legend"}, named.map(([variant], slot) => el("li", {}, el("span", {class: `key series-${slot % 8}`, "aria-hidden": "true"}), variant))),
            ],
            TH.bands({releases: tags, columns}, claim), TH.span(tags),
            el("dl", {class: "advice"}, ["CPU", "GPU"].map((device, i) => [el("dt", {}, device), el("dd", {}, TH.prose(claim.advice[i]))])));
    }));

    TH.answersKey = () => el("ul", {class: "legend answers-key"}, Object.keys(ANSWERS).map((word) => el("li", {}, TH.answer(word))));
})();
