/* A page opened from disk may not read a JSON file, but may run a script: beside X.json lies X.json.js, which hands over the
   same data by calling torchHistoryTwin. And asv's pages open on one machine, where their address names none.
   Part of torch-history. Loaded after jQuery; asv asks for data when all is loaded. */
'use strict';

(function ($) {
    window.torchHistoryTwin = function (data) {
        document.currentScript.twin = data;
    };

    function loadTwin(url) {
        var deferred = $.Deferred();
        var script = document.createElement('script');
        script.src = url.replace(/[?#].*$/, '') + '.js';
        script.onload = function () {
            deferred.resolve(script.twin);
        };
        script.onerror = function () {
            deferred.reject();
        };
        document.head.appendChild(script);
        return deferred.promise();
    }

    if (window.location.protocol === 'file:') {
        $.ajax = function (settings) {
            return settings.dataType === 'json' ? loadTwin(settings.url) : $.Deferred().resolve('').promise();
        };
    }

    /* asv's script ends at an address that it cannot decode. Registered before asv's own, so that asv sees the new one. */
    function readAddress() {
        try {
            decodeURIComponent(window.location.hash);
        } catch {
            window.location.replace('#/');
            $(function () {
                var words = 'This address cannot be read: a % in it does not begin the code of a letter. The page opens at its beginning.';
                $('<p role="alert" class="alert alert-warning"></p>').text(words).prependTo('body');
            });
        }
    }

    readAddress();
    window.addEventListener('hashchange', readAddress);

    var asv;
    var last;
    var openers = {
        /* A benchmark that is shown again without a machine is one whose reader chose all of them. */
        graphdisplay: function (params) {
            var benchmark = asv.main_json.benchmarks[params.benchmark];
            if (benchmark && !params.machine && last !== params.benchmark) {
                params.machine = [benchmark.opens];
            }
            last = params.benchmark;
            /* asv takes no dot in `commits=v2.0.1-v2.1.0`, which its own links name: their numbers have none. */
            if (params.commits) {
                params.commits = params.commits.map(function (range) {
                    return range.split('-').map(function (tag) {
                        return 'at' + asv.revision(tag);
                    }).join('-');
                });
            }
        },
        summarylist: function (params) {
            $.each(Object.values(asv.main_json.benchmarks)[0].lane, function (name, value) {
                params[name] = params[name] || [value];
            });
        }
    };

    Object.defineProperty($, 'asv', {
        get: function () {
            return asv;
        },
        set: function (found) {
            var register = found.register_page;
            found.register_page = function (name, show) {
                register(name, function (params) {
                    if (openers[name]) {
                        openers[name](params);
                    }
                    show(params);
                });
            };
            found.revision = found.get_revision;
            found.get_revision = function (named) {
                return named.replace(/^at/, '');
            };
            asv = found;
        }
    });
})(jQuery);
