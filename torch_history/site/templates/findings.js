"use strict";

/* What belongs together in a comparison, as Python says it: the findings, each with its cases when it is opened. */
(() => {
    const TH = window.torchHistory;
    const {el, folded, sentence} = TH;

    const MOST_FINDINGS = 8;

    const evidence = ({evidence: where, series}, lane, keys) => {
        const [page, item] = where.split("#");
        const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/gu, "-").replace(/^-|-$/gu, "");
        const href = where === "explain" ? TH.historyOf(lane.series[series[0]], keys, {evidence: "1"})
            : TH.method(`${page.replace(/^docs\/|\.md$/gu, "").replace("/", "-")}-${slug(item || "")}`);
        return where && [" ", el("a", {href}, where === "explain" ? "Found by torch-history explain" : "How the cause was found"), "."];
    };
    const change = (row, keys) => el("li", {}, TH.mark(row.verdict), " ", el("a", {href: TH.historyOf(row.series, keys)}, TH.prose(TH.inCode(row.series))),
        ` ${TH.words(row.series.metric)}`, row.ratio > 0 && `: ${TH.ratioWords(row, row.series.unit)}`, row.why && `, ${row.why}`, ".");
    const opened = () => (TH.address().open || "").split("|").filter(Boolean);
    const noted = (name) => ({target}) => {
        const others = opened().filter((each) => each !== name);
        TH.keep({open: (target.open ? [...others, name] : others).join("|")});
    };
    const finding = (lane, pair, keys) => (found) => {
        const scripted = found.series.map((place) => lane.series[place]).find(({question, variant}) => TH.contents.scripted.includes(`code-${question}-${variant}`));
        const isOnCpu = TH.device(lane) === "cpu";
        return el("li", {}, el("details", {open: opened().includes(found.title), toggle: noted(found.title)},
            el("summary", {}, TH.mark(found.verdict), " ", TH.prose(found.words)),
            found.instead && el("p", {class: "instead"}, el("strong", {}, "What to do: "), TH.prose(found.instead)),
            el("p", {class: "instead"}, evidence(found, lane, keys), isOnCpu && scripted && [" ", el("a", {
                href: TH.historyOf(scripted, keys, {reproduce: "1"})}, "A script that shows it"), "."]),
            el("ul", {class: "sentence-list"}, found.series.map((place) => change(pair.byPlace.get(place), keys)))));
    };
    TH.findings = (lane, pair) => {
        const keys = {from: pair.old, to: pair.new};
        const list = (some, start = 1) => el("ol", {class: "sentence-list findings", start}, some.map(finding(lane, pair, keys)));
        const costs = pair.findings.filter(({kind}) => kind === "worse");
        const rest = pair.findings.filter(({kind}) => kind !== "worse");
        const room = Math.max(MOST_FINDINGS - rest.length, MOST_FINDINGS / 2);
        const first = [...costs.slice(0, room), ...rest].slice(0, MOST_FINDINGS);
        const others = pair.findings.filter((one) => !first.includes(one));
        return pair.findings.length ? [list(first), others.length > 0 && folded("more-findings", others.length === 1 ? "1 more finding" : `${others.length} more findings`, list(others, first.length + 1))]
            : el("p", {}, sentence(pair.unchanged));
    };
})();
