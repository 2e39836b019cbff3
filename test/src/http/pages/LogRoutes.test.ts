/** The transparency log over HTTP, as a follower of C2SP tlog-tiles reads it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Server } from "../../../../src/http/Server.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { leafHash } from "../../../../services/transparency/MerkleTree.ts"
import { verifyCheckpoint } from "../../../../sdk/TransparencyLog.ts"
import { until } from "../../../e2e/support/Until.ts"
import { staged } from "../console/ConsoleStage.ts"
import { decide } from "../../../services/transparency/DecisionLogFixture.ts"
import { rootOf } from "../../../services/transparency/NaiveTree.ts"

const ask = Effect.fnUntraced(function* (path: string, method = "GET") {
  const { port } = yield* Server
  const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/log/${path}`, { method }))
  const bytes = yield* Effect.promise(() => answer.bytes())
  return { status: answer.status, headers: answer.headers, bytes }
})

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** The entries of a bundle. */
const unbundled = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const entries: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length;) {
    const length = bytes[at]! * 256 + bytes[at + 1]!
    entries.push(bytes.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return entries
}

layer(staged({ ROLES: "api,lifecycle" }), { excludeTestServices: true, timeout: "2 minutes" })("/log", (it) => {
  it.effect(
    "has a checkpoint within a second, and every tile of it, which caches may keep for ever",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* decide(300)
        const keys = (yield* sql<{ key: string }>`select verifier_key as key from log_keys`).map(({ key }) => key)
        const policy = { origin: keys[0]!.split("+")[0]!, logKeys: keys }
        const checkpoint = yield* until(
          "all decisions are in the checkpoint",
          ask("checkpoint"),
          ({ bytes, status }) => status === 200 && verifyCheckpoint(text(bytes), policy).size >= 300,
        )
        assert.strictEqual(checkpoint.headers.get("content-type"), "text/plain; charset=utf-8")
        assert.strictEqual(checkpoint.headers.get("cache-control"), "no-cache")
        const { root, size } = verifyCheckpoint(text(checkpoint.bytes), policy)

        const [full, rest] = [
          yield* ask("tile/entries/000"),
          yield* ask(`tile/entries/001.p/${size - 256}`),
        ]
        const entries = [full, rest].flatMap(({ bytes, status }) => {
          assert.strictEqual(status, 200)
          return unbundled(bytes)
        })
        assert.lengthOf(entries, size)
        assert.deepStrictEqual(Buffer.from(rootOf(entries)), Buffer.from(root))
        const hashes = yield* ask("tile/0/000")
        assert.deepStrictEqual(
          Buffer.from(hashes.bytes),
          Buffer.concat(entries.slice(0, 256).map(leafHash)),
        )
        const above = yield* ask("tile/1/000.p/1")
        assert.deepStrictEqual(Buffer.from(above.bytes), Buffer.from(rootOf(entries.slice(0, 256))))
        for (const { headers } of [full, rest, hashes, above]) {
          assert.strictEqual(headers.get("content-type"), "application/octet-stream")
          assert.strictEqual(headers.get("cache-control"), "public, max-age=31536000, immutable")
        }
        // A tile that has grown is served under its earlier width as well.
        const earlier = yield* ask("tile/0/000.p/7")
        assert.deepStrictEqual(Buffer.from(earlier.bytes), Buffer.from(hashes.bytes.subarray(0, 7 * 32)))
        assert.strictEqual((yield* ask("tile/0/000", "HEAD")).status, 200)
        assert.strictEqual((yield* ask("tile/0/000", "POST")).status, 405)

        for (
          const path of [
            `tile/0/001.p/${size - 255}`,
            "tile/0/001",
            "tile/1/000",
            "tile/2/000.p/1",
            "tile/0/x000/000",
            "tile/entries/002.p/1",
            "tile/6/x999/x999/x999/x999/999",
            "tile/",
            "tile/data/000",
            "other",
          ]
        ) assert.strictEqual((yield* ask(path)).status, 404, path)

        // While the log is held nothing is served that may contradict what was published.
        yield* sql`update log_head set held_reason = 'different'`
        for (const path of ["checkpoint", "tile/0/000", `tile/entries/001.p/${size - 256}`]) {
          const { headers, status } = yield* ask(path)
          assert.deepStrictEqual(
            [status, headers.get("retry-after"), headers.get("cache-control")],
            [503, "60", "no-store"],
            path,
          )
        }
        yield* sql`update log_head set held_reason = null`
        assert.strictEqual((yield* ask("tile/0/000")).status, 200)
      }),
    120_000,
  )
})
