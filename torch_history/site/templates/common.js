"use strict";

/* Arithmetic on numbers and lists that several pages need. */
(() => {
    /** @param {Iterable<number>} values */
    const sum = (values) => [...values].reduce((total, value) => total + value, 0);

    /** @param {number[]} values */
    const mean = (values) => sum(values) / values.length;

    /** @param {Iterable<number>} values */
    const median = (values) => {
        const sorted = Float64Array.from(values).sort();
        const half = sorted.length >> 1;
        return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    };

    /** Between -limit and limit. @param {number} value @param {number} limit */
    const clip = (value, limit) => Math.min(Math.max(value, -limit), limit);

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

    /** A percentage or a factor in two digits, as digits() of analysis/verdicts.py writes it. @param {number} number */
    const digits = (number) => {
        if (Math.abs(number) >= window.torchHistory.contents.constants.compare.BOUND / 10) {
            return "any";
        }
        const text = fixed(number, Math.abs(number) >= 9.95 ? 0 : 1);
        return Number(text) === 0 ? "0" : Math.abs(number) >= 1 ? text.replace(/\.0$/, "") : text;
    };

    window.torchHistory.common = {sum, mean, median, clip, counted, fixed, digits};
})();
