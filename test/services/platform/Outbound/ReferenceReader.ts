/**
 * A second parser of RFC 9112, simple instead of fast: regular expressions over the whole text. Our parser must accept
 * the same responses with the same result, and no others. Framing fields may not end in blanks.
 */
import { maxInterimResponses } from "../../../../services/platform/Outbound/ResponseParser.ts"

export interface Answer {
  readonly status: number
  readonly body: string
  /** Another request may follow on the connection. */
  readonly kept: boolean
  /** Nothing follows the response. */
  readonly alone: boolean
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)\r\n/
const extension =
  /;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?/
const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,13})(?:${extension.source})*\\r\\n`)

type Fields = ReadonlyArray<readonly [name: string, value: string]>

/** The fields up to the empty line, and the text after it; null if the text does not begin with such a block. */
const fieldsOf = (text: string): readonly [Fields, string] | null => {
  const fields: Array<readonly [string, string]> = []
  for (let rest = text;;) {
    if (rest.startsWith("\r\n")) return [fields, rest.slice(2)]
    const found = field.exec(rest)
    if (found === null) return null
    fields.push([found[1]!.toLowerCase(), found[2]!.replace(/^[\t ]+/, "")])
    rest = rest.slice(found[0].length)
  }
}

const valuesOf = (fields: Fields, wanted: string) =>
  fields.filter(([name]) => name === wanted).map(([, value]) => value)

const chunked = (text: string): readonly [body: string, rest: string] | null => {
  let body = ""
  for (let rest = text;;) {
    const found = chunkLine.exec(rest)
    if (found === null) return null
    const size = parseInt(found[1]!, 16)
    rest = rest.slice(found[0].length)
    if (size === 0) {
      const trailers = fieldsOf(rest)
      if (trailers === null) return null
      const [fields, behind] = trailers
      const framing = [...valuesOf(fields, "content-length"), ...valuesOf(fields, "transfer-encoding")]
      return framing.length > 0 ? null : [body, behind]
    }
    if (rest.slice(size, size + 2) !== "\r\n") return null
    body += rest.slice(0, size)
    rest = rest.slice(size + 2)
  }
}

/** Reads the response in a text; `ends`: the connection ends after the text. Null if the response is invalid. */
export const answerOf = (text: string, ends: boolean): Answer | null => {
  for (let rest = text, interim = 0;;) {
    const line = statusLine.exec(rest)
    const head = line === null ? null : fieldsOf(rest.slice(line[0].length))
    if (line === null || head === null) return null
    const [fields, content] = head
    const lengths = valuesOf(fields, "content-length")
    const encodings = valuesOf(fields, "transfer-encoding")
    const status = Number(line[2])
    const old = line[1] === "0"
    if (lengths.length + encodings.length > 1 || lengths.some((length) => !/^\d{1,15}$/.test(length))) return null
    if (encodings.some((encoding) => encoding.toLowerCase() !== "chunked" || old)) return null
    if (status < 200) {
      if (old || status === 101 || lengths.length + encodings.length > 0 || ++interim > maxInterimResponses) return null
      rest = content
      continue
    }
    const options = valuesOf(fields, "connection").flatMap((value) => value.split(",")).map((option) =>
      option.replace(/^[\t ]+|[\t ]+$/g, "").toLowerCase()
    )
    const offer = valuesOf(fields, "keep-alive").map((value) => /timeout=(\d+)/i.exec(value)?.[1]).filter((s) =>
      s !== undefined
    )
    const kept = !old && !options.includes("close") && !offer.some((seconds) => Number(seconds) <= 2)
    const length = Number(lengths[0] ?? 0)
    if (status === 204 || status === 304) {
      const bare = length === 0 && encodings.length === 0
      return { status, body: "", kept: kept && content === "" && bare, alone: content === "" }
    }
    if (encodings.length > 0) {
      const read = chunked(content)
      return read === null ? null : { status, body: read[0], kept: kept && read[1] === "", alone: read[1] === "" }
    }
    if (lengths.length === 0) return ends ? { status, body: content, kept: false, alone: true } : null
    if (content.length < length) return null
    const alone = content.length === length
    return { status, body: content.slice(0, length), kept: kept && alone, alone }
  }
}
