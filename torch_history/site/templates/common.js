"use strict";

/* Arithmetic on numbers and lists that several pages need. */
(() => {
    /** @param {Iterable<number>} values */
    const median = (values) => {
        const sorted = Float64Array.from(values).sort();
        const half = sorted.length >> 1;
        return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    };

    /** How often each value occurs, in order of first occurrence. @template T @param {T[]} values @returns {Map<T, number>} */
    const counted = (values) => {
        const found = new Map();
        values.forEach((value) => found.set(value, (found.get(value) || 0) + 1));
        return found;
    };

    /** Python's f"{value:.2f}": what is halfway goes to the even digit, where toFixed goes away from zero.
        @param {number} value @param {number} digits */
    const fixed = (value, digits) => {
        const isHalfway = Math.abs(value) * 2 ** (digits + 1) % 2 === 1;
        const below = value.toFixed(digits + 1).slice(0, -1);
        return isHalfway && /[02468]\.?$/.test(below) ? below.replace(/\.$/, "") : value.toFixed(digits);
    };

    const ANY = 1e11;  // a tenth of what Python gives for what has no bound
    /** A factor as all that is told of a change has it: what times() of analysis/verdicts.py writes. @param {number} factor */
    const times = (factor) => {
        if (factor >= ANY) {
            return "any";
        }
        return factor < 10 ? fixed(factor, 2) : fixed(factor, 0).replace(/\B(?=(\d{3})+$)/gu, ",");
    };

    /** An end of an interval, as bound() of analysis/verdicts.py writes it: with the digits that keep it apart from no change.
        @param {number} factor */
    const bound = (factor) => [3, 4].reduce((said, digits) =>
        (/^1\.000?$/u.test(said) && factor !== 1 ? fixed(factor, digits) : said), times(factor));

    const UNITS = [["ns", 1e-9], ["μs", 1e-6], ["ms", 1e-3], ["s", 1], ["m", 60], ["h", 3600]];
    const thousands = (/** @type {string} */ text) => text.replace(/\B(?=(\d{3})+(?!\d))/gu, ",");
    /** A number with its unit, as human() of analysis/verdicts.py writes it. @param {number | null} value @param {string} unit */
    const human = (value, unit) => {
        if (value === null || value === undefined) {
            return "";
        }
        if (unit === "seconds") {
            const [name, least] = UNITS.findLast(([, each]) => value >= Number(each)) || UNITS[0];
            const number = value / Number(least);
            return value === 0 ? "0s" : fixed(number, Math.max(2 - Math.floor(Math.log10(number)), 0)) + name;
        }
        if (unit === "ratio") {
            return fixed(value, 2);
        }
        return unit === "bytes" ? `${thousands(fixed(value, 0))} B` : thousands(fixed(value, 1)).replace(/\.0$/u, "");
    };

    /* Architecture -> a card that has it, as NVIDIA's table of CUDA GPUs and compute capabilities names them. */
    const CARDS = {
        sm_37: "K80", sm_60: "P100", sm_70: "V100", sm_75: "T4", sm_80: "A100", sm_86: "RTX 3090", sm_89: "RTX 4090", sm_90: "H100",
        sm_100: "B200", sm_120: "RTX 5090",
    };

    const named = (/** @type {string} */ each) =>
        (each in CARDS ? `${each} (${CARDS[/** @type {keyof typeof CARDS} */ (each)]})` : each);

    /** The code of a wheel that a card runs: machine code of its own major capability and of no later minor one, the newest;
        undefined where there is none. Source: CUDA's rules of binary compatibility.
        @param {string} card @param {string[]} wheel */
    const codeFor = (card, wheel) => {
        const number = (/** @type {string} */ each) => Number(each.replace(/\D/gu, ""));
        const own = number(card);
        return wheel.filter((each) => /^sm_\d+$/u.test(each) && Math.floor(number(each) / 10) === Math.floor(own / 10) && number(each) <= own)
            .sort((one, other) => number(other) - number(one))[0];
    };

    const all = (/** @type {string[]} */ each) => each.map(named).join(", ");
    /** The GPUs that the wheel of an older release runs on and a newer one's does not.
        @param {string[]} old @param {string[]} now */
    const gone = (old, now) => {
        const cards = Object.keys(CARDS).filter((card) => !now.includes(card) && codeFor(card, old));
        return [...new Set([...old.filter((each) => !now.includes(each)), ...cards])]
            .filter((each) => !codeFor(each, now)).sort((one, other) => Number(one.slice(3)) - Number(other.slice(3)));
    };
    /** The GPUs that a wheel no longer runs on, in a sentence; "" where there are none.
        @param {string[]} old @param {string[]} now @param {string} from @param {string} to */
    const lost = (old, now, from, to) => {
        const cards = gone(old, now);
        return cards.length ? `${to} no longer runs on ${all(cards)}, on which ${from} runs.` : "";
    };
    /** The last releases that run on what a wheel no longer runs on, in a sentence; "" where it runs on all.
        @param {string[]} old @param {string[]} now @param {string[]} tags of all wheels, oldest first
        @param {[string, string[]][]} changed the architectures of a release and of those after it, up to the next one */
    const lastWith = (old, now, tags, changed) => {
        const since = changed.map(([tag]) => tags.indexOf(tag));
        const of = (/** @type {number} */ at) => changed[since.findLastIndex((first) => first <= at)][1];
        /** @type {Map<string, string[]>} */
        const found = new Map();
        gone(old, now).forEach((card) => {
            const last = tags.findLast((_, at) => codeFor(card, of(at))) || "";
            found.set(last, [...(found.get(last) || []), card]);
        });
        const said = [...found].filter(([last]) => last).map(([last, cards]) => `${last} on ${all(cards)}`);
        return said.length ? `The last to run: ${said.join("; ")}.` : "";
    };

    /** What GPUs a wheel has code for, and which its forerunner had or lacked, in sentences.
        @param {string[]} old @param {string[]} now @param {string} from @param {string} to */
    const gpus = (old, now, from, to) => {
        const cards = Object.keys(CARDS).filter((card) => !now.includes(card));
        const missing = lost(old, now, from, to);
        const added = now.filter((each) => !old.includes(each) && !codeFor(each, old));
        const others = cards.filter((card) => codeFor(card, now))
            .map((card) => `${named(card)} with the code for ${codeFor(card, now)}`);
        return [
            missing && `${missing} `,
            `${to} runs on these GPUs: ${[all(now) || "none", ...others].join("; ")}.`,
            added.length && ` New since ${from}: ${all(added)}.`,
            !missing && !added.length && ` They are those of ${from}.`,
        ].filter(Boolean).join("");
    };

    window.torchHistory.common = {median, counted, times, bound, human, gpus, lastWith, lost};
})();
