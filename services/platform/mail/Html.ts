/**
 * The template tag for HTML of pages and mails: values are escaped, and cleaned of invisible characters (Visible.ts),
 * except HTML that this tag itself made.
 */
import { visible } from "../Visible.ts"

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | boolean | null | undefined | ReadonlyArray<Html>

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}

const written = (part: Part): string => {
  if (part === null || part === undefined || part === false || part === true) return ""
  if (part instanceof Html) return part.text
  if (typeof part === "object") return part.map((html) => html.text).join("")
  return visible(String(part)).replaceAll(/[&<>"']/g, (character) => escapes[character]!)
}

export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(strings.reduce((text, string, i) => text + written(parts[i - 1]) + string))
