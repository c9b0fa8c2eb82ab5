"use strict";

/* All series in small: a chart per variant, in it a line per size, each relative to its first release. */
(() => {
    const TH = window.torchHistory;
    const {el} = TH;

    const MAIN = {times: ["time", "median_call", "start_time"], memory: ["peak_memory", "peak_allocated", "start_memory"]};

    const relative = (cells) => {
        const first = cells.find((cell) => cell && cell.numbers);
        return cells.map((cell) => (cell && cell.numbers && first.median > 0 ? cell.median / first.median : null));
    };
    const chart = (lane, tags, marked, series) => {
        const sizes = [...new Set(series.map(({size}) => size))];
        const lines = series.map((one) => [one.size, relative(TH.history.cellsOf(lane, one, false))]).filter(([, numbers]) => numbers.some((number) => number));
        if (!lines.length) {
            return null;
        }
        const [one] = series;
        const numbers = lines.flatMap(([, of]) => of).filter((number) => number > 0);
        const [least, most] = [Math.min(...numbers), Math.max(...numbers)].map(TH.history.times);
        const {benchmark, variant} = one;
        return el("a", {href: TH.link("series.html", {benchmark, size: sizes[0], variant}), title: TH.meaning(one).replaceAll("`", "")},
            el("strong", {}, variant || TH.words(one.metric)), el("span", {class: "quiet"}, TH.prose(TH.meaning(one) || " ")),
            el("span", {class: "quiet scale"}, least === most ? least : `${least} to ${most}`),
            TH.sparkline({tags, releases: tags, lines, marked, height: 54, colours: false, label: `${variant}, sizes: ${lines.length}`}));
    };

    /** @param {any} lane with all that was measured @param {any} address */
    TH.multiples = (lane, address) => {
        const tags = lane.releases.map(({tag}) => tag);
        const marked = [address.from, address.to].map((tag) => TH.tagOf(tags, tag)).filter((tag) => tags.includes(tag));
        const questions = [...new Set(lane.series.map(({question}) => question))].filter((question) => !address.question || question === address.question);
        const all = [...new Set(lane.series.map(({metric}) => metric))].sort();
        const what = address.metric || "times";
        const metricOf = (question) => {
            const known = new Set(lane.series.filter((series) => series.question === question).map(({metric}) => metric));
            return [...MAIN[what] || [what], ...what === "times" ? MAIN.memory : []].find((metric) => known.has(metric));
        };
        const section = (question) => {
            const metric = metricOf(question);
            const of = lane.series.filter((series) => series.question === question && series.metric === metric);
            const charts = [...new Set(of.map(({variant}) => variant))].map((variant) => chart(lane, tags, marked, of.filter((series) => series.variant === variant)));
            return charts.some(Boolean) && el("section", {"aria-labelledby": `of-${question}`},
                el("h2", {id: `of-${question}`}, `${TH.questionWords(question)}: ${TH.words(metric)}`), el("div", {class: "multiples"}, charts));
        };
        const sections = questions.map(section).filter(Boolean);
        const rules = marked.length ? `Dashed rules mark ${marked.join(" and ")}, which you chose. ` : "";
        return el("div", {},
            el("div", {class: "controls"},
               TH.select("What", "metric", [["", "times"], ["memory", "peak memory"], ...all.map((name) => [name, TH.words(name)])], address.metric || ""),
               TH.select("Question", "question", [["", "all questions"], ...[...new Set(lane.series.map(({question}) => question))].map((name) => [name, TH.questionWords(name)])], address.question || "")),
            el("p", {class: "quiet"}, `A chart for each variant, from ${tags[0]} to ${tags.at(-1)}: a line for each size, as multiples of its first release, on a logarithmic scale of its own. `
               + rules + "Choose a chart to see its numbers."),
            sections.length ? sections : el("p", {role: "alert"}, "Nothing of that kind was measured here: choose what else to see, or another question."));
    };
})();
