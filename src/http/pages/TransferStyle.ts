/** The style sheet of the pages behind mailed links: one column, large targets, light and dark. */
export const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dbe0, #3a3f47); --soft: light-dark(#f4f5f7, #1d2126);
  --text: light-dark(#1b1f24, #e3e6ea); --note: light-dark(#59636e, #9aa4af); --link: light-dark(#0550ae, #79b8ff) }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: light-dark(#fff, #14171a) }
main { max-width: 36rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere }
p, dd, blockquote, code { overflow-wrap: anywhere }
a { color: var(--link) }
dl { margin: 1.25rem 0; border-bottom: 1px solid var(--line) }
dl > div { padding: .6rem 0; border-top: 1px solid var(--line) }
dt { color: var(--note); font-size: .875rem } dd { margin: 0 }
blockquote { margin: 0; padding: .5rem .75rem; background: var(--soft); border-radius: .4rem; white-space: pre-wrap }
label { display: block; color: var(--note); font-size: .875rem; margin-bottom: .25rem }
label.choice { display: flex; gap: .75rem; align-items: flex-start; margin: 0 0 1rem; cursor: pointer }
label.choice input { flex: none; width: 1.5rem; height: 1.5rem; margin: 0; accent-color: var(--link) }
select, button, a.button { font: inherit; width: 100%; min-height: 3rem; border-radius: .4rem; padding: .75rem 1rem; line-height: 1.5rem }
select { color: inherit; background: var(--soft); border: 1px solid var(--line); margin-bottom: 1rem }
button, a.button { display: block; text-align: center; text-decoration: none; font-weight: 600; cursor: pointer;
  border: 0; color: light-dark(#fff, #0b1a2b); background: var(--link) }
button.stop { color: light-dark(#fff, #2b0b0b); background: light-dark(#b3261e, #ff8f87) }
button.plain { color: var(--link); background: none; border: 1px solid var(--line); margin-top: .75rem }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.note { color: var(--note); font-size: .875rem; margin-top: 1rem }
@media (min-width: 50rem) {
  main { padding-top: 4rem } button, a.button { width: auto; min-width: 14rem; display: inline-block }
  dl > div { display: grid; grid-template-columns: 9rem 1fr; gap: 1rem } dt { font-size: inherit }
}
`.trimStart()
