import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { decodeJwt } from "jose"
import { canonical, digestOf, sha256 } from "../../sdk/Canonical.ts"
import { entriesOf } from "../../sdk/EventProjection.ts"
import { partsReader } from "../../sdk/ManifestParts.ts"
import { Refusal } from "../../sdk/Refusal.ts"
import { CursorApi } from "../../services/lifecycle/CursorApi.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { access, person } from "../support/TestIdentity.ts"
import { fixture, product, scene, sorted } from "./KitFixture.ts"

const text = canonical({
  access: [{ access_id: 'a,"]}' }, { access_id: "b" }],
  identities: [],
  keys: null,
  owners: [{ person_id: "o" }],
  project: { status: "launched" },
})
const partOf = (text: string) => ({ digest: sha256(text), bytes: Buffer.byteLength(text) })

/** All facts of the text, cut into pieces at these indices. */
const read = (ends: ReadonlyArray<number>, digest = sha256(text)) => {
  const pieces = [...ends, text.length].map((end, i) => text.slice(i === 0 ? 0 : ends[i - 1], end))
  const reader = partsReader(pieces.map(partOf), digest)
  const facts = pieces.flatMap((piece) => reader.next(piece))
  reader.end()
  return facts
}

describe("parts", () => {
  const all = entriesOf(JSON.parse(text))
  const before = (item: string) => text.indexOf(item)
  const [first, second, third] = [before('{"access_id":"a'), before('{"access_id":"b'), before('{"person_id"')]

  it("give the facts of the state, wherever it is cut before an item", () => {
    for (const ends of [[], [first], [second], [third], [first, second], [second, third], [first, second, third]]) {
      assert.deepStrictEqual(read(ends), all, String(ends))
    }
  })

  it("that are changed, in another order, too few, too many, badly cut or of another state are refused", () => {
    const refused = (attempt: () => unknown, step: string) => {
      try {
        attempt()
      } catch (error) {
        assert.instanceOf(error, Refusal)
        return assert.strictEqual((error as Refusal).step, step)
      }
      assert.fail("accepted")
    }
    refused(() => read([second], digestOf({})), "digest")
    refused(() => read([second + 3]), "state")
    const [one, two] = [text.slice(0, second), text.slice(second)]
    refused(() => partsReader([partOf(one), partOf(two)], sha256(text)).next(two), "digest")
    refused(() => partsReader([partOf(one)], sha256(text)).end(), "state")
    const reader = partsReader([partOf(text)], sha256(text))
    reader.next(text)
    refused(() => reader.next(text), "state")
    refused(() => partsReader([partOf("[]")], sha256("[]")).next("[]"), "state")
  })
})

layer(fixture, { excludeTestServices: true })("Manifests", (it) => {
  it.effect("a product killed at several steps of a snapshot in parts applies it and continues by events", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* scene
      yield* sql`
        insert into lifecycle_state (project_id, key, value, position)
        select ${made.project}, 'access/' || lpad(i::text, 8, '0'), jsonb_build_object('access_id', lpad(i::text, 8, '0'),
          'version', 1, 'role', repeat('r', 100), 'user', jsonb_build_object('format', 'iss_sub', 'iss',
            'https://id.example', 'sub', 'person-' || i)), 0
        from generate_series(1, 6000) i`
      const { part, snapshot } = yield* CursorApi
      const state = Effect.gen(function* () {
        const { parts } = decodeJwt(yield* snapshot(made.asking)) as {
          readonly parts: ReadonlyArray<{ readonly digest: string }>
        }
        const texts = yield* Effect.forEach(parts, ({ digest }) => part({ ...made.asking, digest }))
        assert.isAbove(texts.length, 2)
        return sorted(entriesOf(JSON.parse(texts.join(""))))
      })
      const { facts, run, standing } = yield* product(made)
      for (const dieAt of [3, 5, 6, 8, 9, 10]) assert.isTrue((yield* run({ dieAt })).killed)
      const open = yield* run({ until: (notices) => notices.some(({ kind }) => kind === "opened") })
      assert.isFalse(open.killed)
      assert.deepStrictEqual(yield* facts, yield* state)

      yield* access(made.institution, made.project, yield* person())
      yield* run({
        until: (notices) => notices.some((notice) => notice.kind === "applied"),
      })
      assert.deepStrictEqual(yield* facts, yield* state)
      assert.isTrue((yield* standing)!.open)
    }))
})
