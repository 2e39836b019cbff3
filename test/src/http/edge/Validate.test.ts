import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Server } from "../../../../src/http/Server.ts"
import { call, layer as serverLayer, raw } from "./TestServer.ts"

const id = "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"
const good = { name: "ab", tags: ["a"], size: 5, on: true }

layer(serverLayer, { excludeTestServices: true, timeout: "2 minutes" })("a request that does not decode", (it) => {
  it.effect("every fault of path, query, header and body is given at once, byte for byte", () =>
    Effect.gen(function* () {
      const reply = yield* call("POST", "/v1/things/nope?limit=x", {
        name: "a",
        tags: ["z"],
        size: 1.5,
        on: 3,
        note: 5,
      }, {
        "x-key": "12",
      })
      assert.strictEqual(reply.status, 422)
      assert.strictEqual(reply.headers.get("content-type"), "application/json")
      // pydantic 2.13.5 and FastAPI gave these bytes for the same contract, except for the header's value.
      assert.strictEqual(
        reply.text,
        '{"detail":[{"type":"uuid_parsing","loc":["path","id"],"msg":"Input should be a valid UUID, invalid character: ' +
          'found `n` at 1","input":"nope","ctx":{"error":"invalid character: found `n` at 1"}},{"type":"int_parsing",' +
          '"loc":["query","limit"],"msg":"Input should be a valid integer, unable to parse string as an integer",' +
          '"input":"x"},{"type":"string_too_short","loc":["header","x-key"],"msg":"String should have at least 8 ' +
          'characters","ctx":{"min_length":8}},{"type":"string_too_short","loc":["body","name"],"msg":"String should ' +
          'have at least 2 characters","input":"a","ctx":{"min_length":2}},{"type":"literal_error","loc":["body","tags",' +
          '0],"msg":"Input should be \'a\', \'b\' or \'c\'","input":"z","ctx":{"expected":"\'a\', \'b\' or \'c\'"}},' +
          '{"type":"int_from_float","loc":["body","size"],"msg":"Input should be a valid integer, got a number with a ' +
          'fractional part","input":1.5},{"type":"bool_parsing","loc":["body","on"],"msg":"Input should be a valid ' +
          'boolean, unable to interpret input","input":3},{"type":"string_type","loc":["body","note"],"msg":"Input ' +
          'should be a valid string","input":5}]}',
      )
    }))

  it.effect("a missing parameter, member or body is named", () =>
    Effect.gen(function* () {
      const reply = yield* call("POST", `/v1/things/${id}`, { name: "ab", tags: ["a"], size: "5" }, {
        "x-key": "12345678",
      })
      assert.deepStrictEqual(reply.json, {
        detail: [
          { type: "missing", loc: ["query", "limit"], msg: "Field required", input: null },
          {
            type: "missing",
            loc: ["body", "on"],
            msg: "Field required",
            input: { name: "ab", tags: ["a"], size: "5" },
          },
        ],
      })
      for (const body of [undefined, "", "null"]) {
        const bare = yield* call("POST", "/v1/strict", body)
        assert.strictEqual(
          bare.text,
          '{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]}',
        )
      }
    }))

  it.effect("a missing body is {} where nothing is required", () =>
    Effect.gen(function* () {
      for (const body of [undefined, "", "{}", "null"]) {
        const reply = yield* call("POST", "/v1/optional", body)
        assert.deepStrictEqual([reply.status, reply.text], [200, '{"name":null}'])
      }
    }))

  it.effect("values are read as pydantic reads them", () =>
    Effect.gen(function* () {
      const reply = yield* call("POST", `/v1/things/${id}?limit=1_0`, { ...good, size: "5", on: "oFf" }, {
        "x-key": "12345678",
      })
      assert.deepStrictEqual([reply.status, reply.json], [201, { name: "ab", size: 5, on: false }])
      assert.deepStrictEqual((yield* call("GET", "/v1/things?limit=7&all=YES")).json, { limit: 7, all: true })
      assert.deepStrictEqual((yield* call("GET", "/v1/things?limit=0&limit=7")).json, { limit: 7, all: null })
      const zero = yield* call("GET", "/v1/things?limit=0")
      assert.strictEqual(
        zero.text,
        '{"detail":[{"type":"greater_than_equal","loc":["query","limit"],"msg":"Input should be greater than or equal ' +
          'to 1","input":"0","ctx":{"ge":1}}]}',
      )
    }))

  it.effect("the position of broken JSON is given, together with the faults of other sections", () =>
    Effect.gen(function* () {
      const broken = yield* call("POST", "/v1/strict", '{"name": }')
      assert.strictEqual(
        broken.text,
        '{"detail":[{"type":"json_invalid","loc":["body",9],"msg":"JSON decode error","input":{},"ctx":{"error":' +
          '"Expecting value"}}]}',
      )
      const both = yield* call("POST", "/v1/things/nope?limit=1", "{", { "x-key": "12345678" })
      assert.deepStrictEqual(
        (both.json["detail"] as ReadonlyArray<{ readonly loc: ReadonlyArray<unknown> }>).map(({ loc }) => loc),
        [["path", "id"], ["body", 1]],
      )
      assert.strictEqual((yield* call("POST", "/v1/strict", "[".repeat(100_000))).status, 422)
    }))

  it.effect("unknown members are refused where the contract is strict, and ignored elsewhere", () =>
    Effect.gen(function* () {
      const strict = yield* call("POST", "/v1/strict", { other: 1, name: "a" })
      assert.deepStrictEqual(strict.json, {
        detail: [{ type: "extra_forbidden", loc: ["body", "other"], msg: "Extra inputs are not permitted", input: 1 }],
      })
      assert.strictEqual((yield* call("POST", "/v1/optional", { other: 1 })).status, 200)
    }))

  it.effect("no value of a secret request is repeated", () =>
    Effect.gen(function* () {
      const reply = yield* call("POST", "/v1/secret", { code: "hunter2" })
      assert.strictEqual(reply.status, 422)
      assert.notInclude(reply.text, "hunter2")
      assert.notInclude((yield* call("POST", "/v1/secret", { cod: "hunter2" })).text, "hunter2")
    }))

  it.effect("text that a database cannot hold is refused", () =>
    Effect.gen(function* () {
      for (const name of ["a\u0000b", "\ud83d"]) {
        const reply = yield* call("POST", "/v1/optional", JSON.stringify({ name }))
        assert.strictEqual(reply.status, 422)
        assert.deepStrictEqual((reply.json["detail"] as ReadonlyArray<{ readonly loc: unknown }>)[0]?.loc, [
          "body",
          "name",
        ])
      }
      const key = yield* call("POST", "/v1/optional", '{"a\\u0000": 1}')
      assert.strictEqual(key.status, 422)
      assert.strictEqual((yield* call("GET", "/v1/things?limit=%00")).status, 422)
      assert.strictEqual((yield* call("POST", "/v1/optional", { name: "\\u0000 is six characters" })).status, 200)
    }))

  it.effect("the number of reported faults is limited so that the answer stays small", () =>
    Effect.gen(function* () {
      const many = (value: string) => `{${Array.from({ length: 4_900 }, (_, i) => `"k${i}":${value}`).join(",")}}`
      for (const [value, faults] of [["1", 22], ["1e999", 100], ['"\\ud800"', 100]] as const) {
        const { json, status } = yield* call("POST", "/v1/strict", many(value))
        assert.strictEqual(status, 422)
        assert.lengthOf(json["detail"] as ReadonlyArray<unknown>, faults, value)
      }
      const tags = yield* call("POST", `/v1/things/${id}?limit=1`, { ...good, tags: Array(60_000).fill("z") }, {
        "x-key": "12345678",
      })
      assert.deepStrictEqual(
        (tags.json["detail"] as ReadonlyArray<{ readonly loc: unknown }>).map(({ loc }) => loc),
        Array.from({ length: 100 }, (_, i) => ["body", "tags", i]),
      )
    }))

  it.effect("a body with more members, lists or objects than any valid one is not read", () =>
    Effect.gen(function* () {
      for (
        const [body, error] of [
          [`{${Array.from({ length: 5_001 }, (_, i) => `"k${i}":1`).join(",")}}`, "More than 5000 members"],
          [`[${"[],".repeat(6_000)}[]]`, "More than 5000 lists and objects"],
        ] as const
      ) {
        const { json, status } = yield* call("POST", "/v1/optional", body)
        assert.strictEqual(status, 422)
        assert.deepInclude((json["detail"] as ReadonlyArray<object>)[0], { type: "json_invalid", ctx: { error } })
      }
    }))

  it.effect("lengths count code points, not halves of surrogate pairs", () =>
    Effect.gen(function* () {
      const send = (name: string) =>
        call("POST", `/v1/things/${id}?limit=1`, { ...good, name }, { "x-key": "12345678" })
      assert.strictEqual((yield* send("𝒳𝒳𝒳𝒳𝒳")).status, 201)
      assert.strictEqual((yield* send("𝒳")).status, 422)
      assert.strictEqual((yield* send("𝒳".repeat(6))).status, 422)
    }))

  it.effect("a body is waited for ten seconds", () =>
    Effect.gen(function* () {
      const { port } = yield* Server
      const head = `POST /v1/strict HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
        'Content-Length: 20\r\n\r\n{"name":'
      const began = performance.now()
      const reply = yield* raw([head], (soFar) => soFar.includes("}"))
      assert.match(reply, /^HTTP\/1\.1 400 /)
      assert.include(reply, '"code":"malformed_request"')
      assert.isAtLeast(performance.now() - began, 9_500)
    }))
})
