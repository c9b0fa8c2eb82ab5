"use strict";

/* The site's scripts without a browser: what they say of data that is made here. tests/test_site.py runs it. */
const assert = require("node:assert/strict");
const {readFileSync} = require("node:fs");
const {join} = require("node:path");
const test = require("node:test");
const vm = require("node:vm");

class Element {
    constructor() {
        Object.assign(this, {children: [], classList: {add() {}}, clientWidth: 800, dataset: {}});
    }
    append(...children) {
        this.children.push(...children);
    }
    replaceChildren(...children) {
        this.children = children;
    }
    setAttribute() {}
    addEventListener() {}
    get textContent() {
        return this.children.map((child) => child.textContent ?? child).join("");
    }
}
class Observer {
    constructor(see) {
        this.see = see;
    }
    observe(target) {
        target.draw ??= () => this.see([{isIntersecting: true, target}]);
    }
    unobserve() {}
}
Object.assign(globalThis, {
    window: globalThis, Node: Element, IntersectionObserver: Observer, ResizeObserver: Observer, addEventListener() {},
    document: {createElement: () => new Element(), createElementNS: () => new Element()}, location: {hash: "", search: ""},
});
const pages = {};
let name;
for (name of ["app", "common", "chart", "history", "questions", "picture", "multiples", "series", "findings", "release", "upgrade", "facts"]) {
    const file = join(__dirname, "..", "torch_history", "site", "templates", `${name}.js`);
    vm.runInThisContext(readFileSync(file, "utf8"), {filename: file});
    torchHistory.page = (page) => { pages[name] = page; };
}
const TH = torchHistory;
TH.receive("index", {
    lanes: [{id: "lane", words: "a machine"}], labels: {}, wheels: [], pythons: {}, code: [], scripted: [], kinds: {SAME: "same"}, shown: {},
    metrics: {time: ["seconds", true], start_time: ["seconds", true], stalls: ["stalls", false], start_memory: ["bytes", false]},
});
Object.assign(TH, {measured: async (lane) => lane, steps: async () => [], pair: async (_, ...tags) => tags});

/* A lane of v1, v2 and v3 in rounds of one session; `series` are {metric, variant, size, numbers (of each release), missing}. */
const laneOf = (...series) => ({
    id: "lane", machine: {machine: "machine"}, environment: "release-py3.11", changes: [], shifts: {}, reasons: ["it is not there"],
    releases: ["v1", "v2", "v3"].map((tag) => ({tag, date: "2024-01-01", facts: {}})), rounds: [["session", 1], ["session", 2]],
    patterns: series.map(({numbers = []}) => numbers.flatMap((of, release) => of.map((_, round) => [release, round]))),
    series: series.map(({metric = "time", variant = "eager", size = "small", numbers = [], missing = []}, pattern) => ({
        question: "products", benchmark: `products.Products.track_${metric}`, metric, variant, size, parameters: [variant, size],
        unit: TH.contents.metrics[metric][0], pattern, numbers: numbers.flat(), disturbed: [], missing,
    })),
});

test("a release is compared with an older one, whatever the address has beside it", async () => {
    const pairOf = async (release, base) => (await pages.series.needs(laneOf(), {release, base})).pair;
    assert.deepEqual(await pairOf("v2", "v3"), ["v1", "v2"]);
    assert.deepEqual(await pairOf("v3", "v1"), ["v1", "v3"]);
});

test("a release is found as a person writes it", async () => {
    assert.deepEqual((await pages.series.needs(laneOf(), {release: "3", base: "1+cu121"})).pair, ["v1", "v3"]);
    const [lane, main] = [laneOf({numbers: [[1], [2], [3]]}), new Element()];
    const pair = {old: "v1", new: "v2", byPlace: new Map(), instead: []};
    pages.series.render(lane, {benchmark: lane.series[0].benchmark, release: "2"}, main, {happened: [], pair, lane});
    assert.match(main.textContent, /v2 against v1/u);
    assert.doesNotMatch(main.textContent, /was not measured/u);
});

/* What the first page shows of cases with these ratios, null of one that has none, in an order. */
const upgraded = async (sort, ...ratios) => {
    const lane = laneOf(...ratios.map((_, i) => ({variant: `case${i}`})));
    const rows = ratios.map((ratio, place) => ({place, series: lane.series[place], verdict: "SAME", ratio, low: ratio, high: ratio, old: 1, new: 1, why: ""}));
    const said = {typical: "", memory: "the same", broke: "no case"};
    const pair = {old: "v2", new: "v3", rows, byPlace: new Map(rows.map((row) => [row.place, row])), said, main: {times: [], memory: []}, environments: [], sure: [], again: [],
                  unchanged: "same", findings: ratios.length > 1 ? [] : [{series: [0], verdict: "SAME", kind: "same", words: "one", title: "one", evidence: ""}],
                  worst: null, best: null};
    const main = new Element();
    Object.assign(TH, {file: async () => ({claims: []}), scripts: async () => []});
    globalThis.requestAnimationFrame = (done) => done();
    TH.contents.newest = {tag: "v3"};
    await pages.upgrade.render(lane, {sort}, main, {pair, others: [], wheels: {}});
    return main.textContent;
};
test("what has no ratio is last, whichever ratio is first", async () => {
    const order = async (sort) => [...new Set((await upgraded(sort, 2, null, 0.5)).match(/case\d/gu))];
    assert.deepEqual(await order("ratio"), ["case0", "case2", "case1"]);
    assert.deepEqual(await order("-ratio"), ["case2", "case0", "case1"]);
});

test("a command is what a shell takes, whatever a machine is called", () => {
    assert.equal(TH.command("compare", "--machine", "it's; rm -rf ~").textContent, `torch-history compare --machine 'it'"'"'s; rm -rf ~'`);
    assert.equal(TH.command("run", "--lane", "3.11", "2.1.0").textContent, "torch-history run --lane 3.11 2.1.0");
});

test("one changed series is told as one", async () => {
    assert.match(await upgraded("", 2), /1 changed series is 1 finding(?!s)/u);
});

test("the wheels of two releases are told from the older one, as on the other pages", () => {
    const main = new Element();
    TH.bytes ??= String;
    const wheel = {architectures: [], packages: [], libraries: {}, download: 1, installed: 1, torch: 1, date: "2024-01-01", told: {}};
    pages.facts.render({}, {from: "3", to: "v1"}, main, {v1: wheel, v2: wheel, v3: wheel});
    assert.match(main.textContent, /From v1 to v3/u);
});

test("a caption says of the noise what the launches show", () => {
    const said = (metric, ...numbers) => {
        const lane = laneOf({metric, numbers});
        const all = TH.history.members(lane, lane.series[0].benchmark, "small");
        return TH.history.figure(lane, all, all, {y: "linear", label: ""}).textContent;
    };
    assert.match(said("stalls", [1, 1], [2]), /All launches of a release agree\./u);
    assert.match(said("start_memory", [1], [2]), /Each release has a single launch here\./u);
    assert.match(said("time", [1], [2]), /Each release has a single launch here, so the noise is unknown\./u);
    assert.match(said("stalls", [1, 2], [2]), /Bands are their range\./u);
    assert.match(said("start_time", [1], [2]), /^Seconds(?! a call)/u, "a process that starts is no call");
});

test("a chart without its zeros says why, and nothing of lines where it has none", () => {
    const said = (relative, ...numbers) => {
        const lane = laneOf({metric: "stalls", numbers});
        const all = TH.history.members(lane, lane.series[0].benchmark, "small");
        return TH.history.figure(lane, all, all, {y: "log", relative, label: ""}).textContent;
    };
    assert.match(said("start", [2], [0], [1]), / 1 number is 0, which a logarithmic scale cannot show: the table has it\.$/u);
    assert.match(said("start", [0], [3]), /^There is nothing to draw\. 2 numbers have nothing to be divided by\.$/u);
});

test("an axis of ratios has no other 0 than 0", () => {
    const lane = laneOf({numbers: [[65538], [2], [1]]});
    const all = TH.history.members(lane, lane.series[0].benchmark, "small");
    const [, chart] = TH.history.figure(lane, all, all, {y: "log", relative: "start", label: ""}).children;
    chart.draw();
    assert.match(chart.textContent, /0\.0001×0\.001×0\.01×0\.1×1×/u);
});

test("a small ratio keeps two digits in the small charts", () => {
    assert.match(TH.multiples(laneOf({numbers: [[1], [0.00398]]}), {}).textContent, /0\.0040× to 1\.00×/u);
});

test("a variant that fails in some of its sizes is named with them", async () => {
    const made = [];
    TH.lazy = ({id}, _, make) => { made[id] = make; };
    const missing = [[2, 0, 0]];
    const lane = laneOf({variant: "int8", size: "batched", missing}, {variant: "int8", size: "plain", numbers: [[], [], [1]]},
                        {variant: "sparse", size: "batched", missing});
    pages.release.render(lane, {release: "v3"}, new Element(), {steps: [], pair: null, wheels: {}});
    assert.match((await made.missing()).textContent, /products: int8 \(batched\) and sparse$/u);
});

test("one of what is folded is told as one", () => {
    const lane = laneOf({numbers: [[1], [2], [3]]}, {variant: "compiled", numbers: [[1], [2], [3]]});
    const main = new Element();
    const happened = Array.from({length: 9}, (_, i) => ({series: 0, new: "v2", sentence: `v2: ${i}`}));
    const rows = lane.series.map((series, place) => [place, {series, verdict: "SAME", old: 1, new: 1}]);
    const pair = {old: "v1", new: "v2", byPlace: new Map(rows), instead: []};
    const address = {benchmark: "products.Products.track_time", variant: "eager", release: "v2"};
    pages.series.render(lane, address, main, {happened, pair, lane});
    assert.match(main.textContent, /1 smaller one(?!s)/u);
    assert.match(main.textContent, /1 more variant(?!s)/u);
});
