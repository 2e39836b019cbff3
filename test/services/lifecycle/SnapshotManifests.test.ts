import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { decodeJwt } from "jose"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { type Piece, piecesOf, type Row } from "../../../services/lifecycle/SnapshotParts.ts"
import { canonical, digestOf } from "../../../services/platform/security/CanonicalJson.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { tagOf } from "../../support/Fixtures.ts"
import { access, person } from "../../support/TestIdentity.ts"
import { grant, scene, signAll, transmitter } from "./LifecycleFixture.ts"

const sizes = { least: 2_000, most: 6_000 }

const accesses = (n: number): ReadonlyArray<Row> =>
  Array.from({ length: n }, (_, i) => {
    const id = String(i).padStart(6, "0")
    return { key: `access/${id}`, value: { role: "user", access_id: id, version: 1, user: { sub: `p${i}`, iss: "ü" } } }
  })

const cutOf = (rows: ReadonlyArray<Row>) => {
  const writer = piecesOf(sizes)
  const pieces: Array<Piece> = []
  for (const row of rows) pieces.push(...writer.add(row))
  const end = writer.end()
  return { pieces: [...pieces, ...end.pieces], digest: end.digest }
}

const whole = (pieces: ReadonlyArray<Piece>) => pieces.map(({ text }) => text).join("")

describe("parts of a state", () => {
  it("concatenate to the canonical JSON of any state", () => {
    const nothing = {
      access: [],
      identities: [],
      keys: null,
      owners: [],
      people: [],
      project: null,
      reviews: [],
      service_grants: [],
      sessions: [],
      sessions_floor: [],
    }
    const rows: ReadonlyArray<readonly [Row, object]> = [
      [{ key: "access/b", value: { b: 1, a: "\u2028" } }, { access: [{ b: 1, a: "\u2028" }] }],
      [{ key: "keys", value: { next: ["x"] } }, { keys: { next: ["x"] } }],
      [{ key: "person/x y", value: {} }, { people: [{}] }],
      [{ key: "project", value: { status: "launched" } }, { project: { status: "launched" } }],
      [{ key: "session/[]", value: 1 }, { sessions: [1] }],
      [{ key: "sessions_floor/x y", value: 2 }, { sessions_floor: [2] }],
    ]
    for (let mask = 0; mask < 2 ** rows.length; mask++) {
      const chosen = rows.filter((_, i) => (mask >> i) & 1)
      const state = Object.assign({}, nothing, ...chosen.map(([, member]) => member))
      const { digest, pieces } = cutOf(chosen.map(([row]) => row))
      assert.strictEqual(whole(pieces), canonical(state))
      assert.strictEqual(digest, digestOf(state))
    }
  })

  it("are equal for an equal state, and mostly equal after a small change", () => {
    const rows = accesses(2_000)
    const first = cutOf(rows)
    assert.isAbove(first.pieces.length, 20)
    assert.deepStrictEqual(cutOf(rows), first)
    for (const piece of first.pieces.slice(0, -1)) {
      assert.isAtLeast(piece.bytes, sizes.least)
      assert.isBelow(piece.bytes, sizes.most + 200)
    }
    const known = new Set(first.pieces.map(({ digest }) => digest))
    const changed = cutOf(rows.toSpliced(3, 1))
    const fresh = changed.pieces.filter(({ digest }) => !known.has(digest))
    assert.isBelow(fresh.length, changed.pieces.length / 2)
  })

  it("refuse rows out of order", () => {
    const writer = piecesOf(sizes)
    writer.add({ key: "person/x y", value: 1 })
    assert.throws(() => writer.add({ key: "access/x", value: 1 }))
  })
})

/** Gives a project a state of more than a mebibyte, without events. */
const grow = Effect.fnUntraced(function* (project: string, n: number) {
  const { sql } = yield* Database
  yield* sql`
    insert into lifecycle_state (project_id, key, value, position)
    select ${project}, 'access/' || lpad(i::text, 8, '0'), jsonb_build_object('access_id', lpad(i::text, 8, '0'),
      'version', 1, 'role', repeat('r', 60), 'user', jsonb_build_object('format', 'iss_sub', 'iss',
        'https://id.example', 'sub', 'person-' || i)), 0
    from generate_series(1, ${n}::int) i`
})

interface Manifest {
  readonly state?: unknown
  readonly state_digest: string
  readonly parts?: ReadonlyArray<{ readonly digest: string; readonly bytes: number; readonly href: string }>
}

layer(transmitter, { excludeTestServices: true })("Manifests", (it) => {
  it.effect("a large state comes in parts that make its canonical JSON; the next snapshot reuses most parts", () =>
    Effect.gen(function* () {
      const { part, snapshot } = yield* CursorApi
      const { asking, institution, project } = yield* scene
      yield* signAll
      const take = Effect.map(snapshot(asking), (token) => decodeJwt(token) as unknown as Manifest)
      const small = yield* take
      assert.isUndefined(small.parts)
      assert.strictEqual(digestOf(small.state), small.state_digest)

      yield* grow(project, 9_000)
      const large = yield* take
      assert.isUndefined(large.state)
      const parts = large.parts!
      assert.isAtLeast(parts.length, 3)
      const texts = yield* Effect.forEach(parts, ({ digest }) => part({ ...asking, digest }))
      assert.deepStrictEqual(texts.map((text) => Buffer.byteLength(text)), parts.map(({ bytes }) => bytes))
      for (const { digest, href } of parts) {
        assert.strictEqual(href, `/v1/projects/${project}/lifecycle/snapshot/parts/${digest}`)
      }
      const state = JSON.parse(texts.join(""))
      assert.strictEqual(canonical(state), texts.join(""))
      assert.strictEqual(digestOf(state), large.state_digest)
      assert.lengthOf(state.access, 9_000)
      assert.lengthOf(state.service_grants, 1)

      assert.deepStrictEqual((yield* take).parts, parts)
      yield* access(institution, project, yield* person())
      const after = yield* take
      assert.notStrictEqual(after.state_digest, large.state_digest)
      const known = new Set(parts.map(({ digest }) => digest))
      assert.isAtMost(after.parts!.filter(({ digest }) => !known.has(digest)).length, 2)
    }))

  it.effect("a part is readable under the rights of the snapshot, for its project, while it is kept", () =>
    Effect.gen(function* () {
      const { part, snapshot } = yield* CursorApi
      const { sql } = yield* Database
      const made = yield* scene
      const { asking, project } = made
      yield* grow(project, 9_000)
      const { parts } = decodeJwt(yield* snapshot(asking)) as unknown as Manifest
      const { digest } = parts![0]!
      const ask = (who: typeof asking, which = digest) => tagOf(part({ ...who, digest: which }))
      assert.strictEqual(yield* ask(asking), "done")
      assert.strictEqual(yield* ask({ ...asking, clientId: "nobody" }), "NotFound")
      yield* grant(made, "reader", ["events.read"])
      assert.strictEqual(yield* ask({ ...asking, clientId: "reader" }), "RoleRequired")
      const other = yield* scene
      assert.strictEqual(yield* ask(other.asking), "CursorExpired")
      assert.strictEqual(yield* ask(asking, `sha256:${"0".repeat(64)}`), "CursorExpired")
      yield* sql`delete from lifecycle_snapshot_parts where project_id = ${project}`
      assert.strictEqual(yield* ask(asking), "CursorExpired")
    }))
})
