"use strict";

/* Draws each chart when it comes into view, in the colours of the reader's theme. */
(() => {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const options = () => ({actions: false, renderer: "svg", theme: dark.matches ? "dark" : undefined,
                            config: {background: "transparent",
                                     legend: {columns: window.innerWidth < 600 ? 2 : 4, symbolOpacity: 1}}});
    const draw = (figure) => {
        const spec = JSON.parse(figure.querySelector("script").textContent);
        return window.vegaEmbed(figure.querySelector(".chart"), spec, options());
    };
    const seen = new IntersectionObserver((entries) => {
        for (const entry of entries.filter((entry) => entry.isIntersecting)) {
            seen.unobserve(entry.target);
            draw(entry.target);
        }
    }, {rootMargin: "400px"});
    const figures = document.querySelectorAll("figure");
    figures.forEach((figure) => seen.observe(figure));
    dark.addEventListener("change", () => figures.forEach((figure) => seen.observe(figure)));
    window.addEventListener("beforeprint", () => figures.forEach(draw));
})();
