"use strict";

/* What to do instead: the variant of the same question that does the same on one release, and takes surely less there. */
(() => {
    const TH = window.torchHistory;
    const V = TH.verdicts;
    const {counted, times} = TH.common;
    /** Of each series the one that may stand for it and takes surely least on a release, with its interval, or null; and whether
        one may stand for it there. @param {any} lane @param {any[]} series @param {string} tag */
    const bestOf = (lane, series, tag) => {
        const told = V.instead(lane, tag);
        return series.map((own) => ({own, isRivalled: told.has(own), best: told.get(own) || null}));
    };

    const ends = (factors) => {
        const [least, most] = [Math.min(...factors), Math.max(...factors)].map(times);
        return least === most ? least : `${least} to ${most}`;
    };

    /** In one sentence, and a series of the variant that it names, for series of one metric; null where nothing is said of
        that metric. @param {any} lane @param {any[]} series @param {string} tag */
    const advice = (lane, series, tag) => {
        const {unit} = series[0];
        if (!["seconds", "bytes"].includes(unit)) {
            return null;
        }
        const found = bestOf(lane, series, tag);
        const less = unit === "seconds" ? "is faster" : "needs less memory";
        if (!found.some(({isRivalled}) => isRivalled)) {
            return {sentence: `No variant of this question that does the same was measured on ${tag}.`};
        }
        const better = found.map(({best}) => best).filter(Boolean);
        if (!better.length) {
            return {sentence: `No variant of this question that does the same ${less} on ${tag}.`};
        }
        const plain = better.filter(({other}) => !other.variant.startsWith(TH.contents.constants.findings.CPP));
        const [[variant]] = [...counted((plain.length ? plain : better).map(({other}) => other.variant))].sort(([, one], [, two]) => two - one);
        const of = better.filter(({other}) => other.variant === variant);
        const rest = series.length - better.length;
        const another = better.length - of.length;
        const others = [another && `in ${another} more another variant ${less}`, rest && `in ${rest} nothing ${less}`].filter(Boolean).join("; ");
        const where = series.length > 1 ? ` in ${of.length} of ${series.length} cases` : "";
        const end = others && series.length > 1 ? `${where}. ${others[0].toUpperCase()}${others.slice(1)}.` : `${where}.`;
        const means = TH.meaning(of[0].other);
        const start = `On ${tag} \`${variant}\` ${means && "(" + means + ") "}does the same`;
        const factors = ends(of.map(({ratio}) => 1 / ratio));
        if (unit === "bytes") {
            return {series: of[0].other, sentence: `${start} with ${factors} times less memory${end}`};
        }
        const [{low, high}] = of;
        const interval = series.length > 1 ? "" : ` (${ends([1 / low, 1 / high])})`;
        return {series: of[0].other, sentence: `${start} ${factors} times faster${interval}${end}`};
    };

    // --- where the evidence of a cause is

    const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/gu, "-").replace(/^-|-$/gu, "");

    const {bare} = V;
    /* What `torch-history explain` found of a series between two releases, or of all. */
    const evidenceOf = (lane, {benchmark, parameters}) => (lane.evidence || []).filter((known) =>
        known.benchmark === benchmark && known.parameters.map(bare).join("\n") === parameters.join("\n"));

    /** The address of what shows the cause of a row of a finding, and how the cause was found; or null.
        @param {any} lane @param {{of: any, because: string}} row @param {{from: string, to: string}} pair */
    const evidence = (lane, {of: series, because}, {from, to}) => {
        const {FOUND, FUSIONS} = TH.contents.constants.why;
        const {benchmark, size, variant} = series;
        const page = (keys) => TH.link("series.html", {benchmark, size, variant, release: to, base: from, ...keys});
        if (evidenceOf(lane, series).some(({words}) => because.includes(words))) {
            return {href: page({evidence: "1"}), how: "`torch-history explain` found this cause"};
        }
        const byHand = FOUND.find(([, question, , , , words]) => question === series.question && because.includes(words));
        if (byHand) {
            const [document, item] = [byHand[6].replace(/^docs\/|\.md$/gu, ""), byHand[11]];
            return {href: `method.html#${document.replace("/", "-")}-${slug(item)}`, how: "This cause was found by hand"};
        }
        const fusion = FUSIONS.includes(because) && lane.series.find((other) => other.metric === "fusion_groups"
            && other.question === series.question && other.variant === variant && other.size === size);
        return fusion ? {href: page({benchmark: fusion.benchmark}), how: "Fused groups were counted"} : null;
    };

    /** Whether a script apart from the suite moved as the suite's number did: as research/confirm.py decides it.
        @param {{ratio: number, reproduced: number[] | null}} known */
    const isConfirmed = ({ratio, reproduced}) => {
        const [old, now] = reproduced || [0, 0];
        return old > 0 && now > 0
            && Math.abs(Math.log(now / old / ratio)) <= TH.contents.constants.why.SHARE * Math.abs(Math.log(ratio));
    };

    TH.instead = {advice, bestOf, evidence, evidenceOf, isConfirmed};
})();
