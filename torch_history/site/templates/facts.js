"use strict";

/* What does an upgrade bring besides time? What the wheels of each release say: sizes, libraries, GPU architectures. */
(() => {
    const TH = window.torchHistory;
    const {el} = TH;

    const PACKAGES = [["cuDNN", "nvidia-cudnn"], ["NCCL", "nvidia-nccl"], ["Triton", "triton"], ["NumPy", "numpy"]];
    const SIZES = [["installed, all packages", "installed"], ["download, all packages", "download"], ["torch alone, installed", "torch"]];

    const plain = (name) => name.replace(/-cu\d+$/u, "");
    const versionOf = ({packages}, name) => (packages.find((each) => plain(each.name) === name) || {}).version;
    const bytes = (value, isExact) => (isExact ? `${value.toLocaleString("en")} B` : TH.bytes(value));
    const number = (text) => ({text, class: "number"});

    const chosen = (tags, {from, to}) => {
        const [old, now] = [from, to].map((text) => TH.tagOf(tags, text));
        const last = tags.includes(now) ? now : tags.at(-1);
        const first = tags.includes(old) ? old : tags[tags.indexOf(last) - 1] || last;
        const strangers = [[from, old], [to, now]].filter(([text, tag]) => text && !tags.includes(tag)).map(([text]) => text);
        return tags.indexOf(first) > tags.indexOf(last) ? {from: last, to: first, strangers} : {from: first, to: last, strangers};
    };

    const sizes = (wheels, {from, to}, isExact) => {
        const tags = Object.keys(wheels);
        const points = SIZES.flatMap(([variant, key], slot) => tags.map((release, position) =>
            ({position, release, variant, slot, value: wheels[release][key], low: wheels[release][key], high: wheels[release][key]})));
        const node = el("div", {});
        const steps = [...new Set([from, to])].map((tag) => ({position: tags.indexOf(tag), numbers: []}));
        TH.chart(node, {
            x: "order", y: "linear", unit: "bytes", tags, dates: tags.map((tag) => wheels[tag].date), points, steps,
            told: ({release, variant, value}) => ({release, [variant]: `${TH.bytes(value)} (${bytes(value, true)})`}),
        }, "Download and installed size by release. The same numbers are in the table below.");
        const names = ["Release", "Date", "Python", "Download", "Installed", "torch alone", "CUDA", ...PACKAGES.map(([name]) => name),
                       "Least glibc", "C++11 ABI", "GPU architectures"];
        const abi = {true: "yes", false: "no", null: "not said"};
        const rows = tags.map((tag) => {
            const wheel = wheels[tag];
            const mark = tag === to ? " (to)" : tag === from ? " (from)" : "";
            return [
                {text: [tag, mark], class: mark ? "differs" : null}, {text: wheel.date, class: "number"}, wheel.python,
                ...["download", "installed", "torch"].map((key) => number(bytes(wheel[key], isExact))), wheel.cuda || "none",
                ...PACKAGES.map(([, name]) => versionOf(wheel, name) || (name.startsWith("nvidia") ? "inside torch" : "none")),
                wheel.glibc || "not known", abi[wheel.cxx11_abi], wheel.architectures.join(" "),
            ];
        });
        const table = TH.table({caption: "What the wheels of every release bring", head: names, rows: rows.reverse()});
        table.id = "every";
        return el("section", {"aria-labelledby": "sizes"},
            el("h2", {id: "sizes"}, `Size of ${tags.length} releases`),
            el("p", {class: "quiet"}, "Bytes of torch with all packages that it is installed with here, NumPy included. Dashed "
               + "lines mark the two releases chosen above."),
            el("ul", {class: "legend"}, SIZES.map(([name], slot) => el("li", {}, TH.swatch(slot), name))), node,
            TH.toggle("Exact bytes", "exact", isExact), TH.folded("all-wheels", "Every release", table));
    };

    /* What either of two releases has, the largest first: name -> bytes of each, and by how much they differ. */
    const compared = (caption, what, [old, now], {from, to}, isExact) => {
        const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
        const most = (name) => Math.max(old[name] || 0, now[name] || 0);
        const said = (value) => number(value === undefined ? "–" : bytes(value, isExact));
        const rows = names.sort((a, b) => most(b) - most(a)).map((name) => {
            const more = (now[name] || 0) - (old[name] || 0);
            return [name, said(old[name]), said(now[name]), number(more ? `${more > 0 ? "+" : "−"}${bytes(Math.abs(more), isExact)}` : "=")];
        });
        return TH.table({caption, head: [what, from, to, "difference"].map((text, i) => (i ? number(text) : text)), rows});
    };
    const pair = (wheels, both, isExact) => {
        const {from, to} = both;
        const [old, now] = [wheels[from], wheels[to]];
        const installed = (wheel) => Object.fromEntries(wheel.packages.map((each) => [plain(each.name), each.installed]));
        const change = (key) => `${bytes(old[key], isExact)} → ${bytes(now[key], isExact)}`;
        return el("section", {"aria-labelledby": "pair"},
            el("h2", {id: "pair"}, `From ${from} to ${to}`),
            el("ul", {class: "sentence-list"},
               el("li", {}, `Download: ${change("download")}. Installed: ${change("installed")}.`),
               el("li", {}, TH.common.gpus(old.architectures, now.architectures, from, to))),
            el("details", {id: "packages"}, el("summary", {}, "Installed bytes by package"),
               compared("Installed bytes by package", "Package", [installed(old), installed(now)], both, isExact)),
            el("details", {id: "libraries"}, el("summary", {}, "Bytes by library within torch"),
               el("p", {class: "quiet"}, "Files from 1 MiB on. The list of files in a wheel does not say how many bytes of a library "
                  + "are of which GPU architecture."),
               compared("Bytes by library", "Library", [old.libraries, now.libraries], both, isExact)));
    };

    TH.page({
        title: () => "What the wheels bring",
        needsLane: false,
        needs: () => TH.file("wheels"),
        render: (lane, address, main, wheels) => {
            const tags = Object.keys(wheels);
            if (!tags.length) {
                main.append(el("p", {}, "Nothing is known of the wheels: `python -m tools.wheel_files` reads them."));
                return;
            }
            const both = chosen(tags, address);
            const options = [...tags].reverse().map((tag) => [tag, tag]);
            main.append(el("div", {},
                el("div", {class: "controls"}, TH.select("From", "from", options, both.from), TH.select("To", "to", options, both.to)),
                both.strangers.length > 0 && el("p", {role: "alert"},
                    `Nothing is known of a wheel of '${both.strangers.join("' or '")}': this is ${both.from} and ${both.to}.`),
                pair(wheels, both, Boolean(address.exact)),
                sizes(wheels, both, Boolean(address.exact))));
        },
    });
})();
