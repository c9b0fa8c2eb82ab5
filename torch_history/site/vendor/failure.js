/* Leads to the page that says what to do where a script of the folder vendor is missing.
   Part of torch-history. Loaded before all others. */
'use strict';

window.addEventListener('error', function (event) {
    var file = event.target.src || event.target.href || '';
    if (/\/vendor\/[^\/]*$/.test(file)) {
        window.location = 'error.html';
    }
}, true);
