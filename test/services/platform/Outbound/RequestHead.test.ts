/** Valid requests, and paths and headers that would smuggle other lines into a request. */
import { Buffer } from "node:buffer"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { requestOf } from "../../../../services/platform/Outbound/RequestHead.ts"
import { runs } from "../../../support/Runs.ts"

const textOf = (request: string | Uint8Array | null) =>
  request === null ? null : Buffer.from(typeof request === "string" ? Buffer.from(request) : request).toString("latin1")

const head = (lines: string, length: number) =>
  `POST /a HTTP/1.1\r\nhost: h.test\r\nconnection: keep-alive\r\naccept-encoding: identity\r\n${lines}content-length: ${length}\r\n\r\n`

describe("a request", () => {
  it("is its head, then its body's bytes, with ASCII or latin-1 headers", () => {
    const euro = Buffer.from("€").toString("latin1")
    for (const body of ["€", new Uint8Array(Buffer.from("€"))]) {
      assert.strictEqual(
        textOf(requestOf("h.test", "/a", { "X-One": "1\t~" }, body)),
        head("X-One: 1\t~\r\n", 3) + euro,
      )
      assert.strictEqual(textOf(requestOf("h.test", "/a", ["x", "\xe9"], body)), head("x: \xe9\r\n", 3) + euro)
    }
    assert.strictEqual(textOf(requestOf("h.test", "/a", {}, "")), head("", 0))
  })

  it("is refused for an invalid path", () => {
    for (const path of ["", "a", "*", "/a b", "/a\r\nx: y", "/a\tb", "/\0", "/é", "http://h.test/"]) {
      assert.isNull(requestOf("h.test", path, {}, ""), path)
    }
  })

  it("is refused if a header frames it, names its host or controls the connection", () => {
    const names =
      "Host,Content-Length,transfer-ENCODING,connection,keep-alive,proxy-connection,upgrade,te,trailer,expect"
    for (const name of [...names.split(","), "Accept-Encoding"]) {
      for (let twice = 0; twice < 2; twice++) assert.isNull(requestOf("h.test", "/", { [name]: "x" }, ""), name)
    }
  })

  it("is refused for a header without a value", () => {
    assert.isNull(requestOf("h.test", "/", ["a", "b", "c"], ""))
  })

  it("has one line per header, or is refused", () => {
    const character = fc.oneof(
      fc.constantFrom("\r", "\n", "\0", "\x7f", "\u0100", "\u010a", "\u560a", " ", ":", "a"),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    )
    const text = fc.array(character, { maxLength: 6 }).map((all) => all.join(""))
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 3 }), fc.boolean(), (headers, bytes) => {
        const request = textOf(requestOf("h.test", "/a", headers.flat(), bytes ? new Uint8Array([13, 10]) : "\r\n"))
        const good = headers.every(([name, value]) =>
          /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
        )
        assert.strictEqual(request, good ? head(headers.map(([n, v]) => `${n}: ${v}\r\n`).join(""), 2) + "\r\n" : null)
      }),
      { numRuns: runs(5_000) },
    )
  })
})
