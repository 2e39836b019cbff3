/** The layout and style sheet of the developer pages. */
import { framed } from "../pages/PageLayout.ts"

export const devStyle = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem }
h1 { font-size: 1.25rem } a { color: light-dark(#0550ae, #79b8ff) }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; overflow-wrap: anywhere;
  border-top: 1px solid light-dark(#d8dbe0, #3a3f47); font-weight: normal }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .75rem; border-radius: .4rem;
  font: .875rem/1.5 ui-monospace, monospace; background: light-dark(#f4f5f7, #1d2126) }
input, button { font: inherit; padding: .25rem .5rem }
`.trimStart()

export const devStylePath = "/dev/style.css"

export const page = framed(devStylePath)
