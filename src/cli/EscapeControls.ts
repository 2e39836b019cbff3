/**
 * Makes foreign text harmless for a terminal: control characters (ANSI sequences begin with one), characters that
 * reorder or hide text, line separators and lone surrogates are escaped.
 */
const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const unit = (code: number) => `\\u${code.toString(16).padStart(4, "0")}`

/** JSON's own escapes, so that escaped JSON is still the same JSON. */
const escapes = (text: string) => Array.from({ length: text.length }, (_, i) => unit(text.charCodeAt(i))).join("")

/** One line of text. */
export const printable = (text: string): string => text.replace(harmful, (char) => named[char] ?? escapes(char))

/** One line of JSON that parses to `value`. */
export const printableJson = (value: unknown): string => JSON.stringify(value).replace(harmful, escapes)

/** At most `max` characters of one line of text; an ellipsis marks a cut. */
export const shortened = (text: string, max: number): string => {
  const line = printable(text.length > 4 * max ? text.slice(0, 4 * max) : text)
  const chars = [...line]
  return chars.length <= max ? line : `${chars.slice(0, max - 1).join("")}…`
}
