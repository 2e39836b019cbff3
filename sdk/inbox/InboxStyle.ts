/** The element's style sheet. Colours follow the `color-scheme` of the page. */

const css = `
:host {
  --accent: var(--bailiwick-accent, light-dark(#0550ae, #79b8ff));
  --text: var(--bailiwick-text, light-dark(#1b1f24, #e3e6ea));
  --muted: var(--bailiwick-muted, light-dark(#59636e, #9aa4af));
  --surface: var(--bailiwick-surface, light-dark(#fff, #14171a));
  --unread: var(--bailiwick-unread, light-dark(#f0f6ff, #1b2532));
  --border: var(--bailiwick-border, light-dark(#d8dbe0, #3a3f47));
  --danger: var(--bailiwick-danger, light-dark(#a40e26, #ff9a93));
  --warning: var(--bailiwick-warning, light-dark(#7a4a00, #f0c060));
  --success: var(--bailiwick-success, light-dark(#116329, #6bd58a));
  display: inline-block;
  font: var(--bailiwick-font, 15px/1.45 system-ui, sans-serif);
  color: var(--text);
}
:host([inline]) { display: block }
:host([hidden]), [hidden] { display: none !important }
* { box-sizing: border-box }
h2, p, ul, fieldset { margin: 0; padding: 0; border: 0 }
h2 { flex: 1; font-size: 1.1em }
button {
  font: inherit; color: var(--accent); background: none; border: 1px solid transparent; cursor: pointer;
  border-radius: calc(var(--bailiwick-radius, 8px) / 2); padding: .25em .5em; min-height: 24px;
}
button:hover { border-color: currentColor }
[aria-disabled=true] { color: var(--muted); cursor: default }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
.bell { position: relative; color: inherit; padding: .5em; min-width: 44px; min-height: 44px }
svg { width: 1.5em; height: 1.5em; display: block; margin: auto; fill: none; stroke: currentColor; stroke-width: 1.8 }
.badge {
  position: absolute; inset: 0 0 auto auto; min-width: 1.6em; padding: 0 .35em; border-radius: 1em; text-align: center;
  font-size: .75em; line-height: 1.6; font-weight: 600; border: 1px solid transparent;
  background: var(--bailiwick-badge, light-dark(#a40e26, #ff9a93));
  color: var(--bailiwick-badge-text, light-dark(#fff, #300));
}
.panel {
  color: inherit; background: var(--surface); border: 1px solid var(--border);
  border-radius: var(--bailiwick-radius, 8px); padding: 0; overflow: auto;
}
.panel[popover] {
  position: fixed; inset: auto; margin: 0; width: min(var(--bailiwick-width, 24rem), 100vw - 16px);
  max-height: min(36rem, 100dvh - 16px); box-shadow: 0 8px 24px #0004;
}
.panel:focus { outline: none }
.head { display: flex; flex-wrap: wrap; align-items: center; gap: .25em; padding: .5em .75em }
.notice { padding: .75em; border-top: 1px solid var(--border); color: var(--muted) }
.notice.refused { color: var(--danger) }
ul { list-style: none }
li { padding: .6em .75em; border-top: 1px solid var(--border); overflow-wrap: anywhere }
li.unread { background: var(--unread); box-shadow: inset 3px 0 var(--accent) }
li:dir(rtl).unread { box-shadow: inset -3px 0 var(--accent) }
.title { color: inherit }
.unread .title { font-weight: 600 }
.body { white-space: pre-line }
.foot { display: flex; flex-wrap: wrap; align-items: center; gap: .25em .75em; font-size: .875em; color: var(--muted) }
.severity { font-weight: 600; color: var(--danger) }
.severity:empty { display: none }
.severity.warning { color: var(--warning) }
.severity.success { color: var(--success) }
.foot button { margin-inline-start: auto }
.more { display: block; width: calc(100% - 1.5em); margin: .5em .75em }
fieldset { padding: .6em .75em; border-top: 1px solid var(--border) }
legend { padding: 0; float: inline-start; width: 100%; font-weight: 600 }
label { display: inline-flex; gap: .35em; align-items: center; margin-inline-end: 1em; min-height: 24px }
input { accent-color: var(--accent); width: 1.1em; height: 1.1em; margin: 0 }
.said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media (prefers-reduced-motion: no-preference) {
  .panel[popover] { transition: opacity .12s, translate .12s }
  @starting-style { .panel:popover-open { opacity: 0; translate: 0 -4px } }
}
@media (forced-colors: active) { li.unread { border-inline-start: 3px solid Highlight } }
`

let sheet: CSSStyleSheet | undefined

/** One sheet for all elements, made of text by the CSS object model, which no policy of a page forbids. */
export const inboxSheet = (): CSSStyleSheet => {
  if (sheet === undefined) {
    sheet = new CSSStyleSheet()
    sheet.replaceSync(css)
  }
  return sheet
}
