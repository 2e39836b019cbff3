/**
 * Generates responses for comparing HTTP parsers: mostly valid ones, some with the usual faults, cut at random, some of
 * them without an end or ended by a reset. The same seed gives the same responses.
 */
import { Buffer } from "node:buffer"

export interface Script {
  readonly parts: ReadonlyArray<Buffer>
  /** What the receiver does after the last part. */
  readonly ending: "keeps" | "ends" | "resets"
  readonly text: string
  /** Whether random bytes were changed, so that the response may have any fault. */
  readonly mutated: boolean
}

type Random = () => number

/** mulberry32. */
const randomOf = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const goodFields = [
  "server: t",
  "X-A: b",
  "x:",
  "x:\ty ",
  "x: \xe9\xff",
  "date: now",
  'etag: "a, b"',
  "x!#$%&'*+-.^_`|~: y",
]
const badFields = [
  " x: y",
  "\ty",
  "x : y",
  "x\t: y",
  "x",
  ": y",
  "x\0: y",
  "x: a\0b",
  "x: \x01",
  "x: \x7f",
  "x(y): z",
  "\xe9: z",
  "x: a\rb",
  "x: a\nb",
  "upgrade: h2c",
]
const connections = [
  "close",
  "keep-alive",
  "Close",
  "keep-alive, close",
  "x",
  "close-ish",
  "close , x",
  "upgrade",
  "",
  "\tclose\t",
]
const encodings = [
  "Chunked",
  "chunked ",
  "gzip",
  "gzip, chunked",
  "chunked, gzip",
  "chunked, chunked",
  "xchunked",
  "identity",
  "",
  "chunked;a=b",
]
const lengths = [
  "+2",
  "-1",
  "0x2",
  "2, 2",
  "2,3",
  "",
  " ",
  "2 2",
  "99999999999999999999",
  "9007199254740993",
  "1e1",
  "٢",
  "2;",
  "002",
]
const statuses = [200, 200, 200, 200, 201, 204, 304, 205, 301, 404, 410, 500, 503, 999, 600]
const extensions = [
  ";a",
  ";a=b",
  ';a="b"',
  ';a="b\\"c"',
  ";a;b=c",
  ";",
  ";a=",
  " ",
  " ;a",
  "; a",
  ";a =b",
  ';a="b',
  ';a="b"c',
  ";\xe9",
  ";a=\xe9",
  "\t",
  ";a\0",
]
const sizes = [
  "0x1",
  "+1",
  "-1",
  "",
  "g",
  "00000000000000001",
  "10000000000000000",
  "ffffffffffffffffff",
  "1 1",
  "fffffffffffff",
]

class Writer {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  chance(share: number): boolean {
    return this.#random() < share
  }

  below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  pick<A>(from: ReadonlyArray<A>): A {
    return from[this.below(from.length)]!
  }

  lineEnd(): string {
    if (this.chance(0.985)) return "\r\n"
    return this.pick(["\n", "\r", "\r\r\n", "\n\r", " \r\n", "\r \n"])
  }

  fields(most: number): string {
    return Array.from(
      { length: this.below(most + 1) },
      () => (this.chance(0.95) ? this.pick(goodFields) : this.pick(badFields)) + this.lineEnd(),
    ).join("")
  }

  statusLine(status: number): string {
    const version = this.chance(0.96) ? this.pick(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]) : this.pick([
      "HTTP/1.2",
      "HTTP/2",
      "HTTP/2.0",
      "http/1.1",
      "HTTP/0.9",
      "HTTP/01.1",
      "HTP/1.1",
      " HTTP/1.1",
      "\r\nHTTP/1.1",
      "\nHTTP/1.1",
    ])
    const reason = this.chance(0.95)
      ? this.pick([" OK", " ", "", " Not a \xe9 reason", " a\tb"])
      : this.pick(["  ", "\tOK", " O\0K", " \x01", "0 OK", " O\rK", " \x7f"])
    const code = this.chance(0.97) ? String(status) : this.pick(["20", "2000", "099", "000", " 200", "2x0", "-20", ""])
    return `${version} ${code}${reason}${this.lineEnd()}`
  }

  interim(): string {
    let text = ""
    while (this.chance(0.12)) {
      const status = this.chance(0.95) ? this.pick([100, 102, 103]) : this.pick([101, 199])
      const framed = this.chance(0.05)
        ? this.pick(["content-length: 2\r\n", "transfer-encoding: chunked\r\n", "content-length: 0\r\n"])
        : ""
      text += `${this.statusLine(status)}${this.fields(2)}${framed}${this.lineEnd()}`
    }
    return text
  }

  content(): string {
    if (this.chance(0.1)) return "HTTP/1.1 299 Forged\r\ncontent-length: 0\r\n\r\n"
    return Array.from({ length: this.below(20) }, () => String.fromCharCode(this.below(256))).join("")
  }

  chunk(body: string): string {
    const size = this.chance(0.97) ? body.length.toString(16) : this.pick([...sizes, String(body.length + 1)])
    const written = this.chance(0.8) ? size : this.pick([size.toUpperCase(), `00${size}`])
    const extension = this.chance(0.9) ? "" : this.pick(extensions)
    return `${written}${extension}${this.lineEnd()}${body}`
  }

  chunks(): string {
    let text = ""
    for (let n = this.below(4); n > 0; n--) text += this.chunk(this.content() || "a") + this.lineEnd()
    if (this.chance(0.05)) return text
    text += this.chunk("")
    const trailers = this.chance(0.1)
      ? this.pick([
        "content-length: 2\r\n",
        "transfer-encoding: chunked\r\n",
        "connection: close\r\n",
        "x: y\r\n",
        " folded\r\n",
      ])
      : this.chance(0.1)
      ? this.fields(2)
      : ""
    return text + trailers + this.lineEnd()
  }

  /** The fields that frame a body, and the body. */
  framing(): readonly [fields: string, body: string] {
    const body = this.content()
    const length = `content-length: ${body.length}${this.lineEnd()}`
    const chunked = `transfer-encoding: chunked${this.lineEnd()}`
    const way = this.#random()
    if (way < 0.4) return [length, body]
    if (way < 0.7) return [chunked, this.chunks()]
    if (way < 0.82) return ["", body]
    if (way < 0.86) return [`content-length: ${this.pick(lengths)}\r\n`, body]
    if (way < 0.9) return [`transfer-encoding: ${this.pick(encodings)}\r\n`, this.chance(0.5) ? this.chunks() : body]
    if (way < 0.92) return [`content-length: ${body.length + this.pick([-1, 1, 5])}\r\n`, body]
    if (way < 0.94) return [length + `content-length: ${this.chance(0.5) ? body.length : body.length + 1}\r\n`, body]
    if (way < 0.96) return [length + chunked, this.chance(0.5) ? this.chunks() : body]
    if (way < 0.98) return [chunked + length, this.chance(0.5) ? this.chunks() : body]
    return [chunked + chunked, this.chunks()]
  }

  answer(): string {
    const status = this.pick(statuses)
    const [framed, body] = this.framing()
    const connection = this.chance(0.3) ? `connection: ${this.pick(connections)}\r\n` : ""
    const offer = this.chance(0.1) ? `keep-alive: timeout=${this.pick(["1", "5", "60", "x", ""])}\r\n` : ""
    const head = this.chance(0.5) ? connection + this.fields(3) + framed : framed + this.fields(3) + connection
    const empty = status === 204 || status === 304
    const behind = this.chance(0.9)
      ? ""
      : this.pick(["\r\n", "x", "HTTP/1.1 299 Forged\r\ncontent-length: 0\r\n\r\n", "\0", "\r\n\r\n"])
    return `${this.interim()}${this.statusLine(status)}${offer}${head}${this.lineEnd()}${
      empty && this.chance(0.9) ? "" : body
    }${behind}`
  }

  /** The text with a byte or two changed. */
  mutated(text: string): string {
    const at = this.below(text.length)
    const byte = this.chance(0.5)
      ? this.pick(["\r", "\n", "\0", " ", ":", ",", ";", "0", "\t"])
      : String.fromCharCode(this.below(256))
    const skipped = this.chance(0.4) ? 0 : 1
    const mutated = text.slice(0, at) + (skipped === 1 && this.chance(0.3) ? "" : byte) + text.slice(at + skipped)
    return this.chance(0.2) && mutated.length > 0 ? this.mutated(mutated) : mutated
  }

  script(): Script {
    const mutated = this.chance(0.15)
    const whole = mutated ? this.mutated(this.answer()) : this.answer()
    const text = this.chance(0.05) ? whole.slice(0, this.below(whole.length)) : whole
    const bytes = Buffer.from(text, "latin1")
    const cutting = this.#random()
    const cuts = cutting < 0.5
      ? []
      : cutting < 0.98
      ? Array.from({ length: 1 + this.below(3) }, () => this.below(bytes.length))
      : [...bytes.keys()]
    const places = [...new Set([...cuts, bytes.length])].filter((place) => place > 0).sort((a, b) => a - b)
    const ending = this.#random()
    return {
      parts: places.map((to, n) => bytes.subarray(n === 0 ? 0 : places[n - 1], to)),
      ending: ending < 0.4 ? "keeps" : ending < 0.85 ? "ends" : "resets",
      text: bytes.toString("latin1"),
      mutated,
    }
  }
}

export const scriptsOf = (seed: number): () => Script => {
  const writer = new Writer(randomOf(seed))
  return () => writer.script()
}
