"use strict";

/* An address that names a place within a folded document opens it. */
(() => {
    const open = () => {
        const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
        const folded = target && target.closest("details");
        if (folded && !folded.open) {
            folded.open = true;
            target.scrollIntoView({behavior: "instant"});
        }
    };
    window.addEventListener("hashchange", open);
    open();
    document.body.dataset.ready = "#";
})();
