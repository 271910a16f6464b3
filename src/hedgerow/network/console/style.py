"""The style sheet of the console page: that of reports, and what a person needs who decides."""

from hedgerow.report.style import STYLE as REPORT

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2c6a4b"/>'
    '<path d="M5 23a5 5 0 0 1 7-6 6 6 0 0 1 9-1 5 5 0 0 1 6 7z" fill="#e6efe6"/></svg>'
)

STYLE = (
    REPORT
    + """
body { max-width: 78rem; padding-top: 2rem; }
a { color: var(--leaf); text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
.top { display: flex; flex-wrap: wrap; gap: 0.6rem 2rem; align-items: end; justify-content: space-between; }
.top h1 { font-size: clamp(1.7rem, 4vw, 2.25rem); }
.top .kicker { margin-bottom: 0.3rem; }
.line { font: 0.875rem/1.5 var(--sans); color: var(--soft); display: flex; gap: 0.55rem; align-items: baseline; }
.line::before { content: ""; flex: none; width: 0.55rem; height: 0.55rem; border-radius: 50%; background: var(--faint); }
.line.up::before { background: var(--leaf); }
.line.down::before { background: none; box-shadow: inset 0 0 0 2px var(--amber); }
nav { display: flex; flex-wrap: wrap; gap: 0 1.9rem; margin-top: 1.3rem; border-bottom: 1px solid var(--hair);
  font: 0.9375rem/1.5 var(--sans); }
nav a { color: var(--soft); text-decoration: none; padding: 0.55rem 0; margin-bottom: -1px;
  border-bottom: 2px solid transparent; }
nav a:hover { color: var(--ink); }
nav a[aria-current] { color: var(--ink); font-weight: 600; border-bottom-color: var(--leaf); }
nav b { font-weight: 600; font-size: 0.8125rem; padding: 0.05rem 0.45rem; margin-left: 0.35rem; border-radius: 1rem;
  color: var(--paper); background: var(--leaf); }
.news { margin-top: 1.2rem; padding: 0.55rem 1rem; border-radius: 3px; background: var(--leaf-wash);
  font: 0.9375rem/1.5 var(--sans); max-width: none; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(15rem, 20rem); gap: 0 4.5rem; align-items: start; }
.columns > * > section:first-child, .alone > section:first-child { margin-top: 2.25rem; }
aside section { margin-top: 2.5rem; }
aside h2, h2.quiet { font: 600 0.9375rem/1.4 var(--sans); margin-bottom: 0.7rem; }
.none { color: var(--soft); }

.submission { margin-top: 1.2rem; padding: 1.7rem 2rem 1.8rem; border: 1px solid var(--hair); border-radius: 6px;
  min-width: 0; }
.submission + .submission { margin-top: 1.8rem; }
.submission > h2, .submission > h1 { font-size: 1.6rem; line-height: 1.2; text-wrap: balance; unicode-bidi: isolate; }
.submission .said { color: var(--soft); margin-top: 0.45rem; unicode-bidi: isolate; }
.submission .asks { margin-top: 0.9rem; }
.chips { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.4rem; margin-top: 0.35rem; }
.chips li { margin: 0; font: 0.8125rem/1.4 var(--mono); padding: 0.12rem 0.5rem; border-radius: 3px; background: var(--wash); }
.submission .facts { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0.45rem 1.6rem; padding-top: 0; border: 0;
  margin-top: 1.1rem; align-items: baseline; }
.submission .facts > div { display: contents; }
.submission .facts dd, .rules dd { font-size: 0.9375rem; }
.submission .facts .chips { margin: 0; }
.submission .facts dt, .questions dt, .rules dt { line-height: 1.6; }
.submission .privacy { margin-top: 1.4rem; padding: 0.9rem 1.2rem 1rem; }
.submission .privacy p { font-size: 1.0625rem; }
.submission .privacy .note { font-size: 0.8125rem; margin: 0.4rem 0 0; }
.submission .privacy h3 { font: 600 0.875rem/1.4 var(--sans); margin-bottom: 0.2rem; }
.private h3 { color: var(--leaf); } .open h3 { color: var(--slate); } .weak h3 { color: var(--amber); }
.questions { list-style: none; padding: 0; margin-top: 1.5rem; }
.questions > li { max-width: none; padding: 1rem 0 1.1rem; margin: 0; border-top: 1px solid var(--hair); }
.questions h3 { font: 600 1rem/1.4 var(--sans); }
.questions .meaning { margin-top: 0.2rem; }
.questions dl { display: grid; grid-template-columns: 10.5rem minmax(0, 1fr); gap: 0.4rem 1.4rem; margin-top: 0.7rem;
  align-items: baseline; }
.questions dl > div { display: contents; }
.questions dd p + p { margin-top: 0.2rem; }
.questions .words { grid-template-columns: 7rem minmax(0, 1fr); }
.questions dd { font-size: 0.9375rem; line-height: 1.45; }
.questions details { margin-top: 0.5rem; }
.questions summary, .decide summary { font-size: 0.875rem; }
.words dt, .words dd { font: 0.8125rem/1.5 var(--mono); }

.decide { display: grid; align-items: end; grid-template-columns: 1fr 1fr; gap: 1.2rem 2rem; padding-top: 1.4rem;
  border-top: 1px solid var(--hair); }
.decide form { display: flex; flex-direction: column; align-items: start; gap: 0.8rem; min-width: 0; }
.decide form > p { font: 0.9375rem/1.5 var(--sans); }
.decide p.note { grid-column: 1 / -1; margin: 0; }
label { font: 0.8125rem/1.4 var(--sans); color: var(--soft); display: grid; gap: 0.25rem; width: 100%; }
input { font: 1rem/1.4 var(--sans); color: var(--ink); background: var(--paper); border: 1px solid var(--soft);
  border-radius: 4px; padding: 0.5rem 0.65rem; width: 100%; }
button { font: 600 1rem/1.4 var(--sans); padding: 0.55rem 1.5rem; border-radius: 4px; border: 1px solid var(--leaf);
  background: var(--leaf); color: var(--paper); cursor: pointer; }
button:hover { filter: brightness(1.08); }
button.refuse { background: none; color: var(--amber); border-color: var(--amber); }
.decision { margin-top: 1.2rem; font: 0.9375rem/1.5 var(--sans); color: var(--soft); }

.badge { font: 600 0.8125rem/1.4 var(--sans); padding: 0.1rem 0.55rem; border-radius: 1rem; white-space: nowrap;
  color: var(--slate); background: var(--slate-wash); }
.badge.yes { color: var(--leaf); background: var(--leaf-wash); }
.badge.no { color: var(--amber); background: var(--amber-wash); }

.budget + .budget { margin-top: 1.3rem; }
.budget h3 { font: 0.875rem/1.4 var(--sans); color: var(--soft); unicode-bidi: isolate; overflow-wrap: anywhere; }
.budget .left { font: 300 1.75rem/1.2 var(--sans); letter-spacing: -0.015em; font-variant-numeric: tabular-nums; }
.budget .left small { font-size: 0.875rem; font-weight: 400; letter-spacing: 0; color: var(--soft); }
.bar { display: block; width: 100%; height: 10px; margin-top: 0.45rem; }
.bar rect { fill: var(--hair); }
.bar .rest { fill: var(--leaf); }
.bar .low { fill: var(--amber); }
.budget .note { margin-bottom: 0; }

.list { width: 100%; }
.list th, .list td { min-width: 0; max-width: none; padding-block: 0.6rem; overflow-wrap: anywhere; unicode-bidi: isolate; }
.list td.time { white-space: nowrap; color: var(--soft); }
.list td p { font: inherit; max-width: 38rem; }
.list td p + p { color: var(--soft); margin-top: 0.15rem; }
.list td.fn { font: 0.8125rem/1.5 var(--mono); }
.feed { list-style: none; padding: 0; font: 0.875rem/1.45 var(--sans); }
.feed li { margin: 0; padding: 0.5rem 0; border-top: 1px solid var(--hair); overflow-wrap: anywhere; }
.feed time { color: var(--soft); font-size: 0.8125rem; display: block; }
.more { font: 0.875rem/1.5 var(--sans); margin-top: 0.9rem; }
.chain + table { margin-top: 1.4rem; }
.chain { font: 0.875rem/1.5 var(--sans); padding: 0.7rem 1.1rem; border-radius: 3px; border-left: 4px solid var(--leaf);
  background: var(--leaf-wash); max-width: none; overflow-wrap: anywhere; }
.chain.broken { border-color: var(--amber); background: var(--amber-wash); }
.rules { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0.5rem 2rem; align-items: baseline; }
.rules > div { display: contents; }
.struck { color: var(--soft); text-decoration: line-through; }

@media (max-width: 60rem) {
  .columns { grid-template-columns: minmax(0, 1fr); }
}
@media (max-width: 40rem) {
  body { padding-top: 1.3rem; }
  .submission { padding: 1.2rem 1.1rem 1.3rem; margin-inline: -0.4rem; }
  .submission > h2, .submission > h1 { font-size: 1.35rem; }
  .submission .privacy { margin-inline: -1.1rem; }
  nav { gap: 0 1.3rem; }
  .submission .facts, .questions dl, .rules { grid-template-columns: minmax(0, 1fr); gap: 0.1rem; }
  .submission .facts dd, .questions dd, .rules dd { margin-bottom: 0.55rem; }
  .decide { grid-template-columns: minmax(0, 1fr); }
  button { width: 100%; }
  .list, .list tbody, .list tr, .list td, .list th { display: block; border: 0; padding: 0; text-align: left; }
  .list thead { display: none; }
  .list tr { border-top: 1px solid var(--hair); padding: 0.7rem 0; }
  .list td:empty { display: none; }
  .list td[data-name]::before { content: attr(data-name) " "; color: var(--soft); }
}
"""
)
