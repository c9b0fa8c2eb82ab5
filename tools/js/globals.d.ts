/* What the site's scripts share on a page. */
interface SpecialFunctions {
    /** Student's t: the chance of t or less. */
    cdf(t: number, freedom: number): number;
    /** Student's t below which the share lies. */
    quantile(share: number, freedom: number): number;
    digamma(x: number): number;
    trigamma(x: number): number;
}

interface Window {
    /** What app.js and the scripts after it share; data/index.js fills `contents`. */
    torchHistory: any;
    special: SpecialFunctions;
}

/** A chart's element carries what was drawn in it. */
interface Element {
    spec?: any;
    placed?: any;
    drawnWidth?: number;
}
