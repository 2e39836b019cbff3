/**
 * The known differences between our response parser and those of undici and node:http, each with a name;
 * docs/delivery.md gives the reasons. A difference without a name fails the test.
 */
import type { Script } from "./GeneratedAnswers.ts"
import type { Verdict } from "./Oracles.ts"
import { answerOf } from "./ReferenceReader.ts"

/**
 * `lenient`: only ours accepts the response. `strict`: only the other does. `other`: both accept it, with different
 * results. `kept`: only ours would use the connection again. `closed`: only the other would.
 */
export type Kind = "lenient" | "other" | "kept" | "strict" | "closed"

export const kindOf = (ours: Verdict, other: Verdict): Kind | null => {
  if (ours.error === null && other.error !== null) return "lenient"
  if (ours.error !== null) return other.error === null ? "strict" : null
  if (ours.status !== other.status || ours.body !== other.body) return "other"
  return ours.kept === other.kept ? null : ours.kept ? "kept" : "closed"
}

interface Named {
  readonly name: string
  readonly kinds: ReadonlyArray<Kind>
  readonly is: (text: string, script: Script) => boolean
  /** Seen about once in 100,000 generated responses, or in one runtime only. */
  readonly rare?: boolean
}

const control = "[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]"

const found = (name: string, kinds: ReadonlyArray<Kind>, pattern: RegExp): Named => ({
  name,
  kinds,
  is: (text) => pattern.test(text),
})

const strict: ReadonlyArray<Kind> = ["strict"]
const closed: ReadonlyArray<Kind> = ["closed"]

/** The first matching entry names the difference. */
export const named: ReadonlyArray<Named> = [
  {
    name: "bytes after a response close its connection, and the response counts",
    kinds: ["lenient", "closed"],
    is: (text, { ending }) => answerOf(text, ending === "ends")?.alone === false,
  },
  found("100 Continue before a response is skipped", ["lenient"], /HTTP\/1\.1 100/),
  found("blanks after a length or an encoding", strict, /(content-length|transfer-encoding):[^\n]*[\t ]\r\n/i),
  // Seen under Node alone.
  { ...found("101 Switching Protocols", strict, /HTTP\/1\.[01] 101/), rare: true },
  found("a version other than 1.0 and 1.1", strict, /HTTP\/(?!1\.[01])/),
  found("a status below 100", strict, /HTTP\/1\.[01] 0\d\d/),
  found("an empty line before a status line", strict, /(^|\n)[\r\n]+HTTP/),
  found("control characters in a reason", strict, new RegExp(`HTTP/1\\.[01] \\d{3}[^\\n]*${control}`)),
  found("a transfer encoding other than chunked", strict, /transfer-encoding:(?![\t ]*chunked[\t ]*\r\n)/i),
  found("a transfer encoding in HTTP/1.0", strict, /HTTP\/1\.0[^]*transfer-encoding/i),
  found(
    "an encoding or a length twice, both, or one as a trailer",
    strict,
    /(content-length|transfer-encoding):[^]*(content-length|transfer-encoding):/i,
  ),
  found("a length of more than 15 digits", strict, /content-length:[\t ]*\d{16}/i),
  { ...found("a chunk size of more than 13 digits", strict, /\r\n[0-9a-f]{14}/i), rare: true },
  found("an invalid chunk extension, or one with blanks", strict, /\r\n[0-9a-f]+[\t ;]/i),
  { name: "a reset does not end a body", kinds: strict, is: (_, { ending }) => ending === "resets" },
  found("HTTP/1.0 is never kept", closed, /HTTP\/1\.0/),
  found("close with blanks around it is close", closed, /connection:[^\n]*close/i),
  found("a 204 or 304 with framing fields", closed, /HTTP\/1\.1 (204|304)[^]*(content-length|transfer-enc)/i),
  found("an offer to keep for two seconds or less", closed, /timeout=[012]\b/),
]

export const nameOf = (kind: Kind, script: Script): string | undefined =>
  named.find(({ is, kinds }) => kinds.includes(kind) && is(script.text, script))?.name
