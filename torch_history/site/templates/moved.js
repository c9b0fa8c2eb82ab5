"use strict";

/* An address of a page that is gone leads on, with all that it names. */
window.addEventListener("DOMContentLoaded", () => {
    location.replace(document.querySelector("a").getAttribute("href") + location.search + location.hash);
});
