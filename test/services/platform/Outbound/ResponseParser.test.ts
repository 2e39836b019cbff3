/** Responses that are accepted or refused, by the sections of RFC 9112, each cut at every byte. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  maxHeadBytes,
  maxInterimResponses,
  ResponseParser,
} from "../../../../services/platform/Outbound/ResponseParser.ts"
import { bytesOf, cuts, type Read, read } from "./Answers.ts"
import { runs } from "../../../support/Runs.ts"

const ok = "HTTP/1.1 200 OK\r\n"
const length = (body: string) => `content-length: ${body.length}\r\n\r\n${body}`
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`

const done = (status: number, body: string, keep = true): Partial<Read> => ({ end: "done", status, body, keep })
const refused = (status: number | null = null, body = ""): Partial<Read> => ({ end: "refused", status, body })
const more = (status: number | null = null, body = ""): Partial<Read> => ({ end: "more", status, body })

type Case = readonly [what: string, answer: string, read: Partial<Read>, ended?: boolean]

const cases: Readonly<Record<string, ReadonlyArray<Case>>> = {
  "the status line (section 4)": [
    ["with a reason", `${ok}${length("ok")}`, done(200, "ok")],
    ["with an empty reason", `HTTP/1.1 200 \r\n${length("ok")}`, done(200, "ok")],
    ["without a reason and its space", `HTTP/1.1 200\r\n${length("ok")}`, done(200, "ok")],
    ["with a reason in latin-1", `HTTP/1.1 404 Pas trouv\xe9\r\n${length("")}`, done(404, "")],
    ["of an undefined status", `HTTP/1.1 999 x\r\n${length("")}`, done(999, "")],
    ["of HTTP/1.0", `HTTP/1.0 200 OK\r\n${length("ok")}`, done(200, "ok", false)],
    [
      "of HTTP/1.0 with keep-alive",
      `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${length("")}`,
      done(200, "", false),
    ],
    ["of HTTP/1.2", "HTTP/1.2 ", refused()],
    ["of HTTP/2", "HTTP/2", refused()],
    ["in lower case", "http", refused()],
    ["after an empty line", `\r\n${ok}`, refused()],
    ["after a blank", ` ${ok}`, refused()],
    ["with two blanks", "HTTP/1.1  2", refused()],
    ["with a tab", "HTTP/1.1\t2", refused()],
    ["with a status of two digits", "HTTP/1.1 20 ", refused()],
    ["with a status of four digits", "HTTP/1.1 2000", refused()],
    ["with a status below 100", "HTTP/1.1 099", refused()],
    ["with a NUL in the reason", "HTTP/1.1 200 O\0K\r\n", refused()],
    ["that ends in a bare LF", "HTTP/1.1 200 OK\n", refused()],
    ["without a reason, in a bare LF", "HTTP/1.1 200\n", refused()],
    ["that ends in a bare CR", "HTTP/1.1 200 OK\ra", refused()],
    ["of another protocol", "SSH-2.0-OpenSSH_9.2", refused()],
  ],
  "fields (section 5; RFC 9110, section 5)": [
    ["of any token", `${ok}!#$%&'*+-.^_\`|~09az: x\r\n${length("")}`, done(200, "")],
    ["with latin-1, tabs and no value", `${ok}a:\t\xff \x80\t\r\nb:\r\n${length("")}`, done(200, "")],
    ["without a blank after the colon", `${ok}Content-Length:2\r\n\r\nok`, done(200, "ok")],
    ["that are folded", `${ok}a: b\r\n c: d\r\n`, refused()],
    ["that are folded by a tab", `${ok}a: b\r\n\tc\r\n`, refused()],
    ["that begin with a blank", `${ok} a: b\r\n`, refused()],
    ["with a blank before the colon", `${ok}a : b\r\n`, refused()],
    ["without a colon", `${ok}ab\r\n`, refused()],
    ["without a name", `${ok}: b\r\n`, refused()],
    ["with an invalid name", `${ok}a(b): c\r\n`, refused()],
    ["with a latin-1 name", `${ok}\xe9: c\r\n`, refused()],
    ["with a NUL", `${ok}a: b\0c\r\n`, refused()],
    ["with an escape", `${ok}a: \x1b[0m\r\n`, refused()],
    ["with a DEL", `${ok}a: \x7f\r\n`, refused()],
    ["that end in a bare LF", `${ok}a: b\nc: d\r\n`, refused()],
    ["with a bare CR", `${ok}a: b\rc\r\n`, refused()],
    ["that end in CR CR LF", `${ok}a: b\r\r\n`, refused()],
    ["whose head ends in a bare LF", `${ok}a: b\r\n\n`, refused()],
    ["129 of them", `${ok}${"a: b\r\n".repeat(128)}c:`, refused()],
    ["128 of them", `${ok}${"a: b\r\n".repeat(127)}${length("")}`, done(200, "")],
  ],
  "lengths (section 6.3)": [
    ["of a body", `${ok}CONTENT-LENGTH:\t 0002\r\n\r\nok`, done(200, "ok")],
    ["with a blank after them", `${ok}content-length: 2 \r\n`, refused()],
    ["of a body that does not come", `${ok}content-length: 10\r\n\r\nhalf`, more(200, "half"), true],
    ["that are repeated", `${ok}content-length: 2\r\ncontent-length: 2\r\n`, refused()],
    ["that conflict", `${ok}content-length: 2\r\nx: y\r\ncontent-length: 3\r\n`, refused()],
    ["in a list", `${ok}content-length: 2, 2\r\n`, refused()],
    ["with a sign", `${ok}content-length: +2\r\n`, refused()],
    ["below zero", `${ok}content-length: -2\r\n`, refused()],
    ["in hexadecimal", `${ok}content-length: 0x2\r\n`, refused()],
    ["with a blank", `${ok}content-length: 2 2\r\n`, refused()],
    ["without a digit", `${ok}content-length: \r\n`, refused()],
    ["of 16 digits", `${ok}content-length: 9007199254740993\r\n`, refused()],
    ["beside chunks", `${ok}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n`, refused()],
    ["after chunks", `${ok}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n`, refused()],
    ["without: to the end", `${ok}\r\nok`, done(200, "ok", false), true],
    ["without: no end", `${ok}\r\nok`, more(200, "ok")],
    ["without, of HTTP/1.0", `HTTP/1.0 200 OK\r\n\r\nok`, done(200, "ok", false), true],
    ["of a 204", "HTTP/1.1 204 No Content\r\n\r\n", done(204, "")],
    ["of a 204 that announces a body", `HTTP/1.1 204 x\r\ncontent-length: 2\r\n\r\n`, done(204, "", false)],
    ["of a 304", `HTTP/1.1 304 x\r\netag: "x"\r\n\r\n`, done(304, "")],
    ["of a 304 that announces a body's length", "HTTP/1.1 304 x\r\ncontent-length: 9\r\n\r\n", done(304, "", false)],
    ["of a 205, as of other responses", `HTTP/1.1 205 x\r\n${length("ok")}`, done(205, "ok")],
  ],
  "chunks (section 7.1)": [
    ["and their end", `${chunked}2\r\nok\r\n00A\r\n0123456789\r\n0\r\n\r\n`, done(200, "ok0123456789")],
    ["none", `${chunked}0\r\n\r\n`, done(200, "")],
    [
      "in capitals",
      `${ok}TRANSFER-ENCODING: CHUNKED\r\n\r\nF\r\n012345678901234\r\n0\r\n\r\n`,
      done(200, "012345678901234"),
    ],
    ["with extensions", `${chunked}2;a;b=c;d="e\\"\xe9; f"\r\nok\r\n0;x\r\n\r\n`, done(200, "ok")],
    ["with trailers", `${chunked}0\r\nx-sum: 1\r\nconnection: close\r\n\r\n`, done(200, "")],
    ["without a size", `${chunked}\r\n`, refused(200)],
    ["with a sign", `${chunked}+2\r\n`, refused(200)],
    ["with a prefix", `${chunked}0x2\r\n`, refused(200)],
    ["with a blank before the size", `${chunked} 2\r\n`, refused(200)],
    ["with a blank after the size", `${chunked}2 \r\n`, refused(200)],
    ["with a blank before an extension", `${chunked}2 ;a\r\n`, refused(200)],
    ["with an extension without a name", `${chunked}2;\r\n`, refused(200)],
    ["with an extension without a value", `${chunked}2;a=\r\n`, refused(200)],
    ["with an open quote", `${chunked}2;a="b\r\n`, refused(200)],
    ["with text after a quote", `${chunked}2;a="b"c\r\n`, refused(200)],
    ["with a bare LF after the size", `${chunked}2\nok`, refused(200)],
    ["with a bare LF in an extension", `${chunked}2;a\nok`, refused(200)],
    ["with a size of 14 digits", `${chunked}00000000000002\r\n`, refused(200)],
    ["with a size beyond 64 bits", `${chunked}10000000000000002\r\n`, refused(200)],
    ["longer than their size", `${chunked}2\r\nokk`, refused(200, "ok")],
    ["that end in a bare LF", `${chunked}2\r\nok\n`, refused(200, "ok")],
    ["cut off", `${chunked}2\r\nok\r\n`, more(200, "ok"), true],
    ["whose end is cut off", `${chunked}0\r\n`, more(200), true],
    ["with a blank after their name", `${ok}transfer-encoding: chunked \r\n`, refused()],
    ["with a tab after their name", `${ok}transfer-encoding: chunked\t\r\n`, refused()],
    ["that are in another encoding", `${ok}transfer-encoding: gzip\r\n`, refused()],
    ["that are encoded twice", `${ok}transfer-encoding: gzip, chunked\r\n`, refused()],
    ["that are chunked twice", `${ok}transfer-encoding: chunked, chunked\r\n`, refused()],
    ["that are named twice", `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n`, refused()],
    ["by another name", `${ok}transfer-encoding: xchunked\r\n`, refused()],
    ["that are no chunks: identity", `${ok}transfer-encoding: identity\r\n`, refused()],
    ["in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", refused()],
    ["with a length among the trailers", `${chunked}0\r\ncontent-length: 2\r\n`, refused(200)],
    ["with an encoding among the trailers", `${chunked}0\r\ntransfer-encoding: chunked\r\n`, refused(200)],
    ["with a folded trailer", `${chunked}0\r\na: b\r\n c`, refused(200)],
    ["with 127 trailers after one field", `${chunked}0\r\n${"a: b\r\n".repeat(127)}\r\n`, done(200, "")],
    ["with too many trailers", `${chunked}0\r\n${"a: b\r\n".repeat(127)}a:`, refused(200)],
  ],
  "informational responses (RFC 9110, section 15.2)": [
    [
      "before the response",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nlink: <a>\r\n\r\n${ok}${length("ok")}`,
      done(200, "ok"),
    ],
    [
      "as many as are allowed",
      `${"HTTP/1.1 102 x\r\n\r\n".repeat(maxInterimResponses)}${ok}${length("")}`,
      done(200, ""),
    ],
    ["one too many", "HTTP/1.1 102 x\r\n\r\n".repeat(maxInterimResponses + 1), refused()],
    ["that switch protocols", "HTTP/1.1 101 x\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", refused()],
    ["with a length", "HTTP/1.1 103 x\r\ncontent-length: 2\r\n\r\n", refused()],
    ["with chunks", "HTTP/1.1 103 x\r\ntransfer-encoding: chunked\r\n\r\n", refused()],
    ["of HTTP/1.0", "HTTP/1.0 102 x\r\n\r\n", refused()],
    ["alone", "HTTP/1.1 100 Continue\r\n\r\n", more(), true],
    [
      "whose connection field does not count for the response",
      `HTTP/1.1 103 x\r\nconnection: close\r\n\r\n${ok}${length("")}`,
      done(200, ""),
    ],
  ],
  "connections (section 9)": [
    ["that close", `${ok}connection: close\r\n${length("ok")}`, done(200, "ok", false)],
    ["that close, among others", `${ok}Connection: x,\tClose , y\r\n${length("")}`, done(200, "", false)],
    [
      "that close, in a second field",
      `${ok}connection: keep-alive\r\nconnection: close\r\n${length("")}`,
      done(200, "", false),
    ],
    ["that name a similar option", `${ok}connection: close-ish\r\n${length("")}`, done(200, "")],
    ["with bytes after the response", `${ok}${length("ok")}x`, { ...done(200, "ok", false), alone: false }],
    ["with a second response", `${ok}${length("")}${ok}${length("")}`, { ...done(200, "", false), alone: false }],
    ["with a body after a 204", "HTTP/1.1 204 x\r\n\r\nok", { ...done(204, "", false), alone: false }],
    ["with an empty line after the response", `${ok}${length("")}\r\n`, { ...done(200, "", false), alone: false }],
  ],
}

for (const [what, all] of Object.entries(cases)) {
  describe(what, () => {
    for (const [name, answer, expected, ended = false] of all) {
      it(`${name}: ${expected.end}`, () => {
        const bytes = bytesOf(answer)
        const whole = read([bytes], ended)
        assert.deepInclude(whole, expected)
        for (const parts of cuts(bytes)) assert.deepStrictEqual(read(parts, ended), whole, String(parts[0]))
      })
    }
  })
}

describe("bounds", () => {
  const padded = (total: number) => {
    const head = `${ok}content-length: 0\r\nx: `
    return `${head}${"y".repeat(total - head.length - 4)}\r\n\r\n`
  }
  const extended = (bytes: number) => `${chunked}1;a=${"b".repeat(bytes)}\r\nx\r\n0\r\n\r\n`

  it("a head of 16 KiB is accepted, one byte more is refused, at several cuts", () => {
    for (const cut of [1, 17, 8_000, maxHeadBytes - 3, maxHeadBytes - 1]) {
      const parts = (text: string) => [bytesOf(text.slice(0, cut)), bytesOf(text.slice(cut))]
      assert.deepInclude(read(parts(padded(maxHeadBytes))), { end: "done", status: 200 })
      assert.deepInclude(read(parts(padded(maxHeadBytes + 1))), { end: "refused", status: null })
    }
    assert.strictEqual(read([bytesOf(`${ok}x: ${"y".repeat(maxHeadBytes)}`)]).end, "refused")
  })

  it("chunk extensions of a response have at most 16 KiB together", () => {
    assert.strictEqual(read([bytesOf(extended(16_000))]).end, "done")
    assert.strictEqual(read([bytesOf(extended(17_000))]).end, "refused")
    assert.strictEqual(read([bytesOf(chunked + `1;${"a".repeat(9_000)}\r\nx\r\n`.repeat(2))]).end, "refused")
  })

  it("a length, encoding or connection field of more than 256 bytes is refused", () => {
    for (const name of ["content-length", "transfer-encoding", "connection", "keep-alive"]) {
      assert.strictEqual(read([bytesOf(`${ok}${name}: ${"1".repeat(257)}`)]).end, "refused", name)
    }
  })
})

describe("a generated response", () => {
  const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/)
    .filter((name) => !/^(content-length|transfer-encoding|connection|keep-alive)$/i.test(name))
  const value = fc.stringMatching(/^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]{0,30}[\x21-\x7e\x80-\xff])?)?$/)
  const fields = fc.array(fc.tuple(token, value), { maxLength: 8 })
  const body = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 60 })
  const answer = fc.record({
    status: fc.integer({ min: 200, max: 999 }).filter((status) => status !== 204 && status !== 304),
    reason: value,
    before: fields,
    after: fields,
    framing: fc.constantFrom("length", "chunks", "end"),
    bodies: fc.array(body, { maxLength: 4 }),
    close: fc.boolean(),
    interim: fc.array(fc.constantFrom(100, 102, 103), { maxLength: 3 }),
    cuts: fc.array(fc.nat(), { maxLength: 6 }),
  })
  const lines = (all: ReadonlyArray<readonly [string, string]>) =>
    all.map(([name, text]) => `${name}: ${text}\r\n`).join("")

  it("that follows the RFC is read as meant, whatever the cuts", () => {
    fc.assert(
      fc.property(answer, ({ after, before, bodies, close, framing, interim, status, reason, ...rest }) => {
        const texts = bodies.map((one) => String.fromCharCode(...one))
        const whole = texts.join("")
        const framed = framing === "length"
          ? `Content-Length: ${whole.length}\r\n`
          : framing === "chunks"
          ? "Transfer-Encoding: chunked\r\n"
          : ""
        const content = framing === "chunks"
          ? texts.filter((text) => text !== "").map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join("") +
            `0\r\n${lines(after)}\r\n`
          : whole
        const bytes = bytesOf(
          interim.map((code) => `HTTP/1.1 ${code} x\r\n${lines(before)}\r\n`).join("") +
            `HTTP/1.1 ${status} ${reason}\r\n${lines(before)}${framed}${
              close ? "Connection: close\r\n" : ""
            }\r\n${content}`,
        )
        const places = [...new Set(rest.cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b)
        const parts = [...places, bytes.length].map((to, n) => bytes.subarray(n === 0 ? 0 : places[n - 1], to))
        assert.deepStrictEqual(read(parts, framing === "end"), {
          status,
          body: whole,
          end: "done",
          keep: framing !== "end" && !close,
          alone: true,
        })
      }),
      { numRuns: runs(1_000) },
    )
  })

  it("of arbitrary bytes neither throws nor depends on the cuts", () => {
    const bytes = fc.uint8Array({ maxLength: 80 })
    fc.assert(
      fc.property(fc.constantFrom("", ok, chunked, `${chunked}5`), bytes, fc.boolean(), (start, rest, ended) => {
        const all = Buffer.concat([bytesOf(start), rest])
        if (all.length > 0) {
          assert.deepStrictEqual(read(Array.from(all, (byte) => Buffer.from([byte])), ended), read([all], ended))
        }
      }),
      { numRuns: runs(2_000) },
    )
  })

  it("has the fields of a failed head, whole lines of 4 KiB, credentials masked, whatever the cuts; of a success where asked for", () => {
    const fieldsOf = (text: string, ofSuccess = false) =>
      [[bytesOf(text)], ...cuts(bytesOf(text))].map((all) => {
        let found: Readonly<Record<string, string>> | null | undefined
        const head = () => found = parser.keptFields
        const parser: ResponseParser = new ResponseParser({ head, body: () => {} })
        for (const _again of [1, 2]) {
          parser.begin(ofSuccess)
          for (const part of all) parser.read(part)
          assert.isTrue(parser.done)
        }
        return found
      })
    const own = "X-Trace: a:b\r\nWWW-Authenticate: Basic\r\nwww-authenticate:\tBearer \r\n"
    const kept = { "x-trace": "a:b", "www-authenticate": "Basic, Bearer" }
    const none = { "content-length": "0" }
    const cases: ReadonlyArray<readonly [answer: string, fields: Readonly<Record<string, string>> | null]> = [
      [`HTTP/1.1 503 Busy: x\r\n${own}${length("")}`, { ...kept, ...none }],
      [`HTTP/1.1 404\r\n${length("")}`, none],
      [`HTTP/1.1 302 x\r\nlocation: /a\r\n${length("")}`, { location: "/a", ...none }],
      [`HTTP/1.1 200 OK\r\n${own}${length("")}`, null],
      [`HTTP/1.1 103 x\r\nlink: </a>\r\n\r\nHTTP/1.1 500 x\r\n${length("")}`, none],
      [`HTTP/1.1 500 x\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n${length("")}`, { "set-cookie": "…", ...none }],
      ...["Webhook-Signature", "svix-signature", "Authentication-Info", "X-Session", "X-JWT"].map(
        (name) => [`HTTP/1.1 500 x\r\n${name}: v1,a\r\n${length("")}`, { [name.toLowerCase()]: "…", ...none }] as const,
      ),
      [`HTTP/1.1 500 x\r\nAuthor: Ann\r\n${length("")}`, { author: "Ann", ...none }],
      [`HTTP/1.1 500 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-late: 1\r\n\r\n`, {
        "transfer-encoding": "chunked",
      }],
      [`HTTP/1.1 500 x\r\na: 1\r\nb: ${"x".repeat(5_000)}\r\n${length("")}`, { a: "1" }],
    ]
    for (const [answer, fields] of cases) {
      for (const found of fieldsOf(answer)) assert.deepStrictEqual(found, fields, answer.slice(0, 60))
    }
    const success = `HTTP/1.1 200 OK\r\n${own}${length("")}`
    for (const found of fieldsOf(success, true)) assert.deepStrictEqual(found, { ...kept, ...none })
  })

  it("has the Retry-After of its own head, and none of trailers or of an interim response; a long one is left out", () => {
    const seen = (text: string) =>
      [[bytesOf(text)], ...cuts(bytesOf(text))].map((all) => {
        let found: string | null | undefined
        const head = () => found = parser.retryAfter
        const parser: ResponseParser = new ResponseParser({ head, body: () => {} })
        parser.begin()
        for (const part of all) parser.read(part)
        assert.isTrue(parser.done)
        return found
      })
    const busy = "HTTP/1.1 503 Busy\r\n"
    const cases: ReadonlyArray<readonly [answer: string, retryAfter: string | null]> = [
      [`${busy}Retry-After: 120\r\n${length("")}`, "120"],
      [`${busy}RETRY-AFTER:\r\n${length("")}`, ""],
      [`${busy}retry-after: 1\r\nretry-after: 2\r\n${length("")}`, "2"],
      [`${busy}retry-bfter: 120\r\n${length("")}`, null],
      [`HTTP/1.1 103 x\r\nretry-after: 9\r\n\r\n${busy}${length("")}`, null],
      [`${busy}transfer-encoding: chunked\r\n\r\n0\r\nretry-after: 9\r\n\r\n`, null],
      [`${busy}retry-after: ${"9".repeat(255)}\r\n${length("")}`, "9".repeat(255)],
      [`${busy}retry-after: ${"9".repeat(256)}\r\n${length("")}`, null],
      [`${busy}retry-after: ${"9".repeat(2_000)}\r\n${length("")}`, null],
    ]
    for (const [answer, retryAfter] of cases) {
      for (const found of seen(answer)) assert.strictEqual(found, retryAfter, answer.slice(0, 60))
    }
  })
})
