/* The special functions that the site's verdicts need, of stdlib: `npm run bundle` makes vendor/special.min.js of it. */
import digamma from "@stdlib/math-base-special-digamma";
import trigamma from "@stdlib/math-base-special-trigamma";
import cdf from "@stdlib/stats-base-dists-t-cdf";
import quantile from "@stdlib/stats-base-dists-t-quantile";

window.special = {cdf, quantile, digamma, trigamma};
