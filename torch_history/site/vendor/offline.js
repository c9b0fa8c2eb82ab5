/* What asv's dashboard lacks, to be opened from disk and to show releases where it expects commits.
   Part of torch-history. Loaded after jQuery, before asv's scripts. */
'use strict';

(function ($) {
    var PIXELS_PER_CHARACTER = 7;

    /* A page opened from disk may not read a JSON file, but may run a script: beside X.json lies X.json.js, which hands
       over the same data by calling torchHistoryTwin. */
    function loadTwin(url) {
        var deferred = $.Deferred();
        var promise = deferred.promise();
        var script = document.createElement('script');
        script.charset = 'utf-8';
        script.src = url.replace(/[?#].*$/, '') + '.js';
        script.onload = function () {
            $(script).remove();
            if ('twin' in script) {
                deferred.resolve(script.twin, 'success', promise);
            } else {
                deferred.reject(promise, 'parsererror', script.src + ' holds no data');
            }
        };
        script.onerror = function () {
            $(script).remove();
            deferred.reject(promise, 'error', script.src + ' cannot be read');
        };
        document.head.appendChild(script);
        return promise;
    }

    window.torchHistoryTwin = function (data) {
        document.currentScript.twin = data;
    };

    if (window.location.protocol === 'file:') {
        var requestFromServer = $.ajax;
        $.ajax = function (url, options) {
            var settings = typeof url === 'string' ? $.extend({}, options, {url: url}) : url;
            if (settings.dataType === 'json' || settings.dataType === 'text') {
                return loadTwin(settings.url);
            }
            return requestFromServer.apply($, arguments);
        };
    }

    /* Ticks for Flot's x axis: the releases on it by their tags, as many as have room, the newest always among them. */
    function releaseTicks(axis) {
        var byDate = axis.options.mode === 'time';
        var dates = $.asv.main_json.revision_to_date;
        var place = axis.options.transform || function (x) { return x; };
        var scale = $('#main-graph').width() / ((place(axis.max) - place(axis.min)) || 1);
        var ticks = [];
        $.each($.asv.main_json.tags, function (tag, revision) {
            var x = byDate ? dates[revision] : revision;
            if (x >= axis.min && x <= axis.max) {
                ticks.push([x, byDate ? tag + '<br>' + new Date(x).toISOString().slice(0, 10) : tag]);
            }
        });
        ticks.sort(function (a, b) { return b[0] - a[0]; });
        var room = ((byDate ? '2024-10-29' : 'v2.10.0').length + 1) * PIXELS_PER_CHARACTER;
        var last = Infinity;
        return $.grep(ticks, function (tick) {
            var pixel = place(tick[0]) * scale;
            if (last - pixel >= room) {
                last = pixel;
                return true;
            }
            return false;
        }).reverse();
    }

    /* What an address says, or as it stands where it cannot be decoded. */
    function decoded(text) {
        try {
            return decodeURIComponent(text);
        } catch (error) {
            return text;
        }
    }

    /* Whether nothing here is called that, which the page then says until it shows something else. */
    function isUnknown(benchmark) {
        var unknown = !Object.prototype.hasOwnProperty.call($.asv.main_json.benchmarks, benchmark);
        if (unknown) {
            $('<p id="torch-history-unknown" class="alert alert-warning"/>')
                .text('No benchmark is called ' + benchmark + '. Choose one of those below.')
                .insertBefore('#summarygrid-display');
        }
        return unknown;
    }

    /* At each new address: the link to torch-history leads to its page of the series that is shown here. */
    function linkBack() {
        $('#torch-history-unknown').remove();
        var benchmark = decoded(window.location.hash.slice(1).split('?')[0]);
        var page = benchmark.indexOf('.') > 0 ? 'series.html#benchmark=' + encodeURIComponent(benchmark) : 'index.html';
        $('#nav-li-torch-history a').attr('href', '../' + page);
    }
    $(linkBack);
    $(window).on('hashchange', linkBack);

    $.torchHistory = {releaseTicks: releaseTicks, decoded: decoded, isUnknown: isUnknown};
})(jQuery);
