/**
 * Reads back the messages of the dev mailbox, as nodemailer wrote them: headers with encoded words (RFC 2047), one
 * multipart/alternative with a text and an HTML part in quoted-printable, base64 or unencoded. It reads no other form.
 */

export interface ReadMail {
  readonly subject: string
  readonly from: string
  readonly to: string
  readonly date: string
  readonly messageId: string
  readonly text: string
  readonly html: string
}

const bytesOf = (quoted: string): Buffer =>
  Buffer.from(
    quoted.replaceAll(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    "latin1",
  )

/** Adjacent encoded words are one text: their separator goes, and a character may be split between them. */
const words = (text: string): string =>
  text.replaceAll(/(=\?utf-8\?[qb]\?[^?\s]*\?=)\s+(?==\?utf-8\?[qb]\?)/gi, "$1")
    .replaceAll(/(?:=\?utf-8\?[qb]\?[^?\s]*\?=)+/gi, (run) =>
      Buffer.concat(
        Array.from(
          run.matchAll(/=\?utf-8\?([qb])\?([^?\s]*)\?=/gi),
          ([, encoding, word]) =>
            encoding!.toLowerCase() === "b" ? Buffer.from(word!, "base64") : bytesOf(word!.replaceAll("_", " ")),
        ),
      ).toString("utf8"))

interface Part {
  readonly header: (name: string) => string
  readonly body: string
}

const split = (raw: string): Part => {
  const end = raw.indexOf("\r\n\r\n")
  const headers = new Map(
    raw.slice(0, end < 0 ? raw.length : end).replaceAll(/\r\n[ \t]+/g, " ").split("\r\n").map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  return { header: (name) => headers.get(name) ?? "", body: end < 0 ? "" : raw.slice(end + 4) }
}

const decoded = ({ body, header }: Part): string => {
  const encoding = header("content-transfer-encoding").toLowerCase()
  if (encoding === "base64") return Buffer.from(body, "base64").toString("utf8")
  if (encoding === "quoted-printable") return bytesOf(body.replaceAll(/=\r\n/g, "")).toString("utf8")
  return Buffer.from(body, "latin1").toString("utf8")
}

/** `bytes` is the whole file. */
export const readEml = (bytes: Uint8Array): ReadMail => {
  const whole = split(Buffer.from(bytes).toString("latin1"))
  const boundary = /boundary="?([^";]+)/.exec(whole.header("content-type"))?.[1]
  const parts = boundary === undefined
    ? [whole]
    : whole.body.split(`--${boundary}`).slice(1, -1).map((part) => split(part.slice(2).replace(/\r\n$/, "")))
  const partOf = (type: string) => parts.find((part) => part.header("content-type").startsWith(type))
  const textOf = (part: Part | undefined) => part === undefined ? "" : decoded(part).replaceAll("\r\n", "\n")
  return {
    subject: words(whole.header("subject")),
    from: words(whole.header("from")),
    to: words(whole.header("to")),
    date: whole.header("date"),
    messageId: whole.header("message-id"),
    text: textOf(partOf("text/plain")),
    html: textOf(partOf("text/html")),
  }
}
