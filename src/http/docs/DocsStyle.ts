/** The style sheet of the reference page. */
export const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dbe0, #3a3f47); --soft: light-dark(#f4f5f7, #1d2126);
  --text: light-dark(#1b1f24, #e3e6ea); --note: light-dark(#59636e, #9aa4af); --link: light-dark(#0550ae, #79b8ff); }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: light-dark(#fff, #14171a);
  display: grid; grid-template: "header header" auto "nav main" 1fr / minmax(14rem, 22rem) minmax(0, 1fr) }
header { grid-area: header; padding: 1.5rem; border-bottom: 1px solid var(--line) }
nav { grid-area: nav; padding: 1rem 1.5rem; border-right: 1px solid var(--line); position: sticky; top: 0;
  max-height: 100vh; overflow: auto; font-size: .85rem }
main { grid-area: main; padding: 1rem 1.5rem; max-width: 60rem }
h1, h2, h3, h4 { line-height: 1.25; overflow-wrap: anywhere }
h3 { font-size: 1.05rem } h4 { margin: 1rem 0 .25rem; font-size: .85rem; color: var(--note) }
nav h2 { font-size: .9rem; margin: 1rem 0 .25rem }
nav ul { list-style: none; margin: 0; padding: 0 } nav li { padding: .15rem 0; overflow-wrap: anywhere }
a { color: var(--link); text-decoration: none } a:hover, a:focus-visible { text-decoration: underline }
:target { scroll-margin-top: 4rem; outline: 2px solid var(--link); outline-offset: .5rem; border-radius: .25rem }
.fold { border-top: 1px solid var(--line); padding: .35rem 0 } .fold > summary { padding: .5rem 0 }
.fold h3, nav summary h2 { display: inline } article { padding: 0 0 1rem }
.introduction p { max-width: 46rem } .introduction h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem }
code, pre { font: .875em/1.5 ui-monospace, monospace }
pre { background: var(--soft); padding: .75rem; border-radius: .4rem; overflow: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line);
  font-weight: normal; overflow-wrap: anywhere }
th { width: 35% } td table { margin: .35rem 0 .35rem .5rem }
summary { cursor: pointer; padding: .25rem 0 } .reply { margin: .25rem 0 }
.note { color: var(--note); font-size: .875rem }
.req { color: light-dark(#9a3412, #f0a36b); font-size: .8rem }
.verb { font: 700 .75rem/1 ui-monospace, monospace; padding: .2em .4em; border-radius: .25em; background: var(--soft) }
.get { color: light-dark(#0a5c36, #6fd19c) } .post { color: light-dark(#0550ae, #79b8ff) }
.put, .patch { color: light-dark(#8a5300, #e3b341) } .delete { color: light-dark(#b3261e, #ff8f87) }
/* Wide windows have room for the whole list of endpoints; browsers that do not know the selector fold it. */
@media (min-width: 50.01rem) { nav details::details-content { content-visibility: visible; block-size: auto } }
@media (max-width: 50rem) {
  body { display: block } nav { position: static; max-height: none; border-right: 0; border-bottom: 1px solid var(--line) }
  header, nav, main { padding: 1rem } th, td { display: block; width: auto } td { border-top: 0 }
}
`.trimStart()
