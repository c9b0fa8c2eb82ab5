/* What the site's scripts share on a page. */
interface Window {
    /** What app.js and the scripts after it share; data/index.js fills `contents`. */
    torchHistory: any;
}

/** A chart's element carries what was drawn in it. */
interface Element {
    spec?: any;
    placed?: any;
    drawnWidth?: number;
    window?: any;
    across?: number[];
    from?: number | null;
    told?: any;
}
