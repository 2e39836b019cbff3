/**
 * Streams that a console session alone opened: they last as long as the session, and do not keep it alive. In real time,
 * since a credential is checked again after 30 s.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { demoIds } from "../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../src/embedded/DemoIdentity.ts"
import { type Browser, ownPage, signedIn, staged } from "../src/http/console/ConsoleStage.ts"

const recheckMillis = 31_000

/** Opens a stream with the browser's cookies; the effect waits for its next bytes, null where it has ended. */
const followed = (one: Browser, path: string) =>
  Effect.gen(function* () {
    const cookie = [...one.jar].map(([name, value]) => `${name}=${value}`).join("; ")
    const response = yield* Effect.promise(() => fetch(new URL(path, one.origin), { headers: { cookie } }))
    assert.strictEqual(response.status, 200)
    const reader = response.body!.getReader()
    return Effect.promise(async () => {
      const { done, value } = await reader.read()
      return done ? null : new TextDecoder().decode(value)
    })
  })

const streams = [
  ["Alice", "/v1/notifications/stream", "account_id", demoIds.alice],
  ["Bob", "/v1/webhook-deliveries/stream", "account_id", demoIds.bob],
  ["Oz", "/v1/operations/stream", "person_id", demoIdentityIds.oz],
] as const

const lasts = Effect.fnUntraced(function* ([who, path, column, id]: typeof streams[number]) {
  const { sql } = yield* Database
  const one = yield* signedIn(who)
  const seen = sql<{ seen_at: Date }>`
    select seen_at from console_sessions where ${sql(column)} = ${id} order by created_at desc limit 1`
  const chunk = yield* followed(one, path)
  // Each use of a session is written at most once a minute.
  yield* sql`update console_sessions set seen_at = seen_at - interval '2 minutes' where ${sql(column)} = ${id}`
  const before = yield* seen
  const began = performance.now()
  // A quiet stream has a heartbeat every 15 s.
  const after = Effect.repeat(chunk, {
    until: (text) => text === null || performance.now() - began > recheckMillis + 2_000,
  })
  assert.isNotNull(yield* after, `${path} ended after ${performance.now() - began} ms`)
  assert.deepStrictEqual(yield* seen, before, path)
  const left = yield* one.ask("POST", "/console/sign-out", { headers: ownPage })
  assert.strictEqual(left.status, 200)
  assert.isNull(yield* Effect.repeat(chunk, { until: (text) => text === null }), path)
})

layer(staged(), { excludeTestServices: true, timeout: "1 minute" })("a stream of a console session", (it) => {
  it.effect(
    "goes on while the session lives, is no use of it, and ends with it",
    () => Effect.forEach(streams, lasts, { concurrency: 3, discard: true }),
    240_000,
  )
})
