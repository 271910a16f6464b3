"""The style sheet of the page: one column of text, quiet tables, light and dark, phone and paper."""

STYLE = """
:root {
  --paper: #fbfaf6; --ink: #23271f; --soft: #5d6358; --hair: #dcdacf; --wash: #f1efe6;
  --leaf: #2c6a4b; --leaf-wash: #e6efe6; --slate: #55606e; --slate-wash: #eceeef;
  --amber: #8a5a12; --amber-wash: #f7eeda; --rust: #a3341f;
  --ink0: #2c6a4b; --ink1: #b0602a; --ink2: #3d62a8; --ink3: #87447c; --ink4: #7a6a10; --faint: #b3b3a6; --depth: 0.62;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Sitka Text", Cambria, Georgia, serif;
  --sans: system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #161916; --ink: #e6e4da; --soft: #a4a99d; --hair: #353a34; --wash: #1f231f;
    --leaf: #8acca5; --leaf-wash: #1d2c23; --slate: #b3bdc9; --slate-wash: #22272b;
    --amber: #e3b566; --amber-wash: #2e2717; --rust: #f0907c;
    --ink0: #8acca5; --ink1: #eda06a; --ink2: #93b4ee; --ink3: #dc9fd2; --ink4: #d6c565; --faint: #5d635a; --depth: 0.42;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; background: var(--paper); color: var(--ink); }
body { margin: 0 auto; padding: 3.5rem 1.5rem 4rem; max-width: 62rem; font: 1.0625rem/1.6 var(--serif); }
h1, h2, h3, p, dl, dd, ul, figure { margin: 0; }
h1 { font-size: clamp(1.9rem, 5vw, 2.75rem); line-height: 1.12; font-weight: 600; letter-spacing: -0.015em;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; line-height: 1.25; font-weight: 600; margin-bottom: 0.7rem; overflow-wrap: anywhere; }
h3 { font-size: 1.0625rem; font-weight: 600; }
p, li { max-width: 42rem; overflow-wrap: anywhere; }
section { margin-top: 3.25rem; }
.kicker { font: 0.8125rem/1.4 var(--sans); color: var(--soft); margin-bottom: 0.9rem; }
.brand { color: var(--leaf); font-weight: 600; margin-right: 0.5em; }
.lead { font-size: 1.1875rem; line-height: 1.5; color: var(--soft); margin-top: 0.8rem; }
.note { font: 0.875rem/1.5 var(--sans); color: var(--soft); margin: 0.6rem 0; }

.privacy { margin-top: 2.25rem; padding: 1.2rem 1.5rem 1.3rem; border-left: 4px solid; border-radius: 3px; }
.privacy h2, .warnings h2 { font: 600 0.875rem/1.4 var(--sans); margin-bottom: 0.3rem; }
.privacy p { font-size: 1.25rem; line-height: 1.45; }
.privacy .exposed { font-size: 1rem; margin-top: 0.6rem; }
.private { border-color: var(--leaf); background: var(--leaf-wash); }
.private h2 { color: var(--leaf); }
.open { border-color: var(--slate); background: var(--slate-wash); }
.open h2 { color: var(--slate); }
.weak { border-color: var(--amber); background: var(--amber-wash); }
.weak h2 { color: var(--amber); }
.warnings { margin-top: 1rem; padding: 0.9rem 1.5rem 1rem; border-left: 4px solid var(--amber); border-radius: 3px;
  background: var(--amber-wash); }
.warnings h2 { color: var(--amber); }
ul { padding-left: 1.15rem; }
.warnings ul { font-size: 1rem; }
li + li { margin-top: 0.35rem; }

dt { font: 0.8125rem/1.4 var(--sans); color: var(--soft); }
dd { font-family: var(--sans); font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.glance h2 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.glance { margin-top: 2.5rem; }
.metrics { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1.5rem; }
.metrics dd { font-size: 2.25rem; line-height: 1.15; font-weight: 300; letter-spacing: -0.02em; white-space: nowrap; }
.metrics dd.words { font-size: 1.5rem; line-height: 1.725; font-weight: 400; letter-spacing: 0; white-space: normal; }
.headlines small { display: block; font-size: 0.875rem; line-height: 1.4; font-weight: 400; letter-spacing: 0;
  color: var(--soft); white-space: normal; margin-top: 0.25rem; }
.care { margin-top: 2.25rem; }
.aside { margin-top: 1rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.9rem 2.25rem; margin-top: 1.75rem; padding-top: 1.1rem;
  border-top: 1px solid var(--hair); }
.provenance { display: grid; gap: 0.5rem; margin-top: 0.9rem; }
.provenance div { display: grid; grid-template-columns: 9rem 1fr; gap: 1rem; align-items: baseline; }
.provenance dd { font: 0.875rem/1.5 var(--mono); }

.saw { margin-top: 0.9rem; border-top: 1px solid var(--hair); }
.saw div { display: grid; grid-template-columns: minmax(6rem, 11rem) 1fr; gap: 1.25rem; padding: 0.7rem 0 0.75rem;
  border-bottom: 1px solid var(--hair); }
.saw dt { font-size: 0.9375rem; font-weight: 600; color: var(--ink); overflow-wrap: anywhere; }
.saw dd { font-family: var(--serif); font-size: 1rem; }
.letters { margin-top: 1.75rem; }

.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 2.5rem 3rem; }
figure { max-width: 30rem; min-width: 0; }
figure > svg { display: block; width: 100%; height: auto; margin-top: 0.7rem; overflow: visible; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.15rem 1.15rem; padding: 0; margin-top: 0.3rem;
  font: 0.8125rem/1.5 var(--sans); color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 0.45rem; margin: 0; }
.legend svg { width: 22px; height: 10px; flex: none; }
.legend b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
svg text { font: 13px var(--sans); fill: var(--soft); font-variant-numeric: tabular-nums; }
svg path, svg line { fill: none; stroke: var(--stroke, currentColor); stroke-linejoin: round; }
svg .rule { stroke: var(--hair); stroke-width: 1; }
svg .limit { stroke: var(--ink); stroke-width: 1.25; stroke-dasharray: 2 4; }
svg .main { stroke-width: 2.4; }
svg .dotted { stroke-dasharray: 2.5 3.5; }
svg .reference { stroke-width: 1.6; stroke-dasharray: 7 4; }
svg .muted { --stroke: var(--faint); stroke-width: 1.2; }
svg .dot { fill: var(--stroke); stroke: var(--paper); stroke-width: 1.5; }
svg .interval { stroke-width: 1.6; }
svg .band { fill: var(--stroke); stroke: none; opacity: 0.16; }
svg .spread { stroke-width: 7; stroke-linecap: round; opacity: 0.35; }
.ink0 { --stroke: var(--ink0); } .ink1 { --stroke: var(--ink1); } .ink2 { --stroke: var(--ink2); }
.ink3 { --stroke: var(--ink3); } .ink4 { --stroke: var(--ink4); }

.across { max-width: none; }
svg.narrow { display: none !important; }
svg .flat { stroke: none; }
svg .named { fill: var(--ink); }
svg .strong { fill: var(--ink); font-weight: 600; }
svg .expected { stroke-width: 4; stroke-linecap: round; }
.forest p { margin-top: 0.8rem; }
.flow { list-style: none; margin: 0; padding: 0; max-width: 36rem; font: 0.9375rem/1.4 var(--sans); }
.flow li { display: grid; grid-template-columns: 1fr auto; gap: 1rem; max-width: none; margin: 0; padding: 0.55rem 0.9rem;
  background: var(--wash); border-radius: 3px; font-variant-numeric: tabular-nums; }
.flow .lost { background: none; color: var(--soft); font-size: 0.8438rem; padding: 0.25rem 0.9rem 0.25rem 1.8rem; }

.scroll { overflow-x: auto; margin-top: 0.4rem; }
:focus-visible { outline: 2px solid var(--leaf); outline-offset: 3px; }
table { border-collapse: collapse; font: 0.875rem/1.4 var(--sans); font-variant-numeric: tabular-nums; }
th, td { padding: 0.42rem 1.4rem 0.42rem 0; text-align: left; vertical-align: baseline; unicode-bidi: isolate;
  border-bottom: 1px solid var(--hair); min-width: 6.5rem; max-width: 24rem; overflow-wrap: break-word; }
th:last-child, td:last-child { padding-right: 0; }
thead th, thead td { color: var(--soft); font-weight: 400; border-bottom-color: var(--soft); vertical-align: bottom; }
tbody th { font-weight: 600; }
th.number, td.number { min-width: 0; text-align: right; white-space: nowrap; }
.said { overflow-wrap: anywhere; }
pre { font: 0.8125rem/1.5 var(--mono); background: var(--wash); padding: 1rem 1.2rem; border-radius: 3px; margin: 0;
  overflow-x: auto; }

.light { font-weight: 600; padding: 0.1rem 0.55rem; border-radius: 999px; color: var(--paper); }
.light.green { background: var(--leaf); } .light.red { background: var(--rust); } .light.dim { background: var(--slate); }
.audit figure { margin-top: 1.5rem; }
@media (max-width: 40rem) {
  .audit thead { display: none; }
  .audit tr { display: grid; grid-template-columns: 1fr auto; padding: 0.6rem 0; border-bottom: 1px solid var(--hair); }
  .audit table, .audit tbody { display: block; }
  .audit th, .audit td { border: 0; padding: 0.1rem 0; max-width: none; }
  .audit td:nth-child(n+3) { grid-column: 1 / -1; }
}

.loss { font-size: 1.1875rem; margin-top: 0.4rem; }
.comparison { width: 100%; max-width: 44rem; margin-top: 0.9rem; }
.comparison th, .comparison td { vertical-align: middle; }
.comparison small { display: block; font-weight: 400; font-size: 0.8125rem; color: var(--soft); }
.comparison td.number { font-size: 1.0625rem; }
.comparison .track { width: 40%; padding-right: 0; }
.comparison td.track { padding-block: 0; }
.comparison .track svg { display: block; width: 100%; }
.comparison th.track span:last-child { float: right; }

.heat { border-collapse: separate; border-spacing: 2px; font-size: 0.75rem; }
.heat th, .heat td { border: 0; padding: 0.14rem 0.3rem; text-align: center; min-width: 2.35rem; }
.heat tbody th { font-weight: 400; text-align: right; white-space: nowrap; padding-right: 0.6rem; }
.heat tbody td { border-radius: 2px; height: 1.6em;
  background: color-mix(in srgb, var(--leaf) calc(var(--depth) * var(--shade, 0%)), var(--wash)); }
.heat th.group { text-align: left; font-weight: 600; padding-top: 0.7rem; }
.marked { font-size: 0.8125rem; }
.marked thead th { line-height: 1.2; vertical-align: bottom; width: 4.2rem; }
.marked tbody td { min-width: 3.2rem; vertical-align: top; }
.heat td b { display: block; font-size: 0.875em; line-height: 1.35; border-radius: 2px; color: var(--paper);
  background: var(--rust); }
.dense td { min-width: 0.85rem; padding: 0; }
.dense thead th { min-width: 0; padding: 0; font-size: 0.625rem; }
.dense tbody td { font-size: 0; }

details { margin-top: 0.9rem; }
summary { font: 0.875rem/1.5 var(--sans); color: var(--leaf); cursor: pointer; width: fit-content; padding: 0.2rem 0; }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--hair); }
footer p { font: 0.8125rem/1.5 var(--sans); color: var(--soft); }

@media screen and (max-width: 40rem) {
  svg.wide { display: none !important; }
  svg.narrow { display: block !important; }
  .across svg text { font-size: 13px; }
  .cards, .cards tbody, .cards tr, .cards th, .cards td { display: block; }
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards tbody tr { display: grid; gap: 0.15rem 1.25rem; padding: 0.7rem 0 0.8rem; border-bottom: 1px solid var(--hair); }
  .cards tbody th, .cards tbody td { border: 0; padding: 0; min-width: 0; max-width: none; text-align: left; }
  .cards tbody td { display: grid; grid-template-columns: minmax(4.5rem, 32%) 1fr; gap: 0.75rem; white-space: normal;
    overflow-wrap: anywhere; }
  .cards tbody td:empty, .cards td.none { display: none; }
  .pairs tbody tr { grid-template-columns: 1fr 1fr; }
  .pairs tbody th { grid-column: 1 / -1; }
  .pairs tbody td { grid-template-columns: 1fr auto; text-align: right; }
  .cards tbody td::before { content: attr(data-label); color: var(--soft); text-align: left; }
}
@media (max-width: 32rem) {
  body { padding: 2rem 1.1rem 3rem; font-size: 1rem; }
  section { margin-top: 2.5rem; }
  .privacy, .warnings { margin-inline: -1.1rem; padding-inline: 1.1rem; border-radius: 0; }
  .privacy p { font-size: 1.125rem; }
  .metrics { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.2rem; }
  .metrics dd { font-size: 1.8rem; }
  .metrics dd.words { font-size: 1.25rem; line-height: 1.35; overflow-wrap: break-word; }
  .facts { gap: 0.8rem 1.6rem; }
  .provenance div { grid-template-columns: 1fr; gap: 0; }
  .saw div { grid-template-columns: 1fr; gap: 0.25rem; }
  th, td { padding-right: 1rem; }
  .comparison thead td, .comparison tbody th { min-width: 0; }
  pre { font-size: 0.6875rem; padding: 0.8rem; }
  .heat th, .heat td { min-width: 1.65rem; padding-inline: 0.1rem; }
  .heat.dense td { min-width: 0.85rem; }
  .heat.marked tbody td, .heat.marked thead th { min-width: 0; font-size: 0.6875rem; }
  .heat.marked thead th { font-size: 0.625rem; letter-spacing: -0.01em; }
  .heat.marked tbody th { font-size: 0.6875rem; white-space: normal; padding-right: 0.25rem; }
  svg text { font-size: 15px; }
  svg.square text { font-size: 13px; }
}
@media print {
  @page { margin: 18mm 16mm; }
  :root { --paper: #fff; }
  body { padding: 0; max-width: none; font-size: 10.5pt; }
  section { margin-top: 1.8rem; }
  .privacy, .warnings, .heat td, svg { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  figure, tr, .privacy, .metrics, .comparison, .heat, .flow, .warnings { break-inside: avoid; }
  .headlines { grid-template-columns: repeat(4, 1fr); }
  th, td { min-width: 0; padding-right: 0.8rem; font-size: 0.8125rem; }
  h2, h3, thead, section > p { break-after: avoid; }
  svg text { font-size: 15px; }
  .scroll { overflow: visible; }
  .curves { grid-template-columns: 1fr 1fr; gap: 1.5rem 2rem; }
  .numbers { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; color: var(--soft); }
  pre { white-space: pre-wrap; }
}
"""
