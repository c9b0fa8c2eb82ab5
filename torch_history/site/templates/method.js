"use strict";

/* An address that names a place within a folded document opens it; what was chosen on other pages stays so on the way back. */
(() => {
    const open = () => {
        const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
        const folded = target && target.closest("details");
        if (folded && !folded.open) {
            folded.open = true;
            target.scrollIntoView({behavior: "instant"});
        }
    };
    const chosen = location.search.slice(1) || (location.hash.includes("=") ? location.hash.slice(1) : "");
    if (chosen) {
        document.querySelectorAll("a[data-page]").forEach((/** @type {HTMLAnchorElement} */ link) => {
            link.href = `${link.dataset.page}#${chosen}`;
        });
    }
    window.addEventListener("hashchange", open);
    open();
    document.body.dataset.ready = "#";
})();
