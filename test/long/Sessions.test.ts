/**
 * Every request checks its session in the database: a session ended by one process is refused by another at once,
 * though no wake-up signal connects them (each has a broker account of its own), and by a process that comes back.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer, issuerKeyFile } from "../../src/embedded/EmbeddedIssuer.ts"
import { home } from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { fixture, type IdentityFixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { instance } from "../e2e/support/ProgramInstance.ts"
import { until } from "../e2e/support/Until.ts"

/** Another process on the same database, with the same issuer and a separate broker account. */
const deaf = Effect.fnUntraced(function* (around: IdentityFixture) {
  const folder = yield* home
  copyFileSync(join(around.home, issuerKeyFile), join(folder, issuerKeyFile))
  const other = yield* instance({
    ...around.env(),
    PORT: "0",
    BAILIWICK_HOME: folder,
    BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
    NATS_URL: Redacted.value((yield* TestBus.make).url),
  })
  yield* other.start()
  return other
})

describe("sessions on several processes", () => {
  it.live("a session ended by one process is refused by every other", () =>
    Effect.gen(function* () {
      const around = yield* fixture()
      const other = yield* deaf(around)
      const processes = [around.instance, other]

      /** The answers of the processes to a session of pat's. */
      const says = Effect.fnUntraced(function* (headers: Readonly<Record<string, string>>) {
        return yield* Effect.forEach(
          processes,
          ({ origin }) => Effect.map(api(origin, headers).get("/v1/me"), ({ json, status }) => json.code ?? status),
        )
      })
      const session = Effect.fnUntraced(function* (sid: string) {
        const { mintAccessToken } = yield* EmbeddedIssuer
        const token = yield* mintAccessToken({ issuer: demoIssuer, subject: "pat", clientId: "portal", sid })
        return { authorization: `Bearer ${token}` }
      }, Effect.provide(around.issuer))
      const act = Effect.fnUntraced(function* (headers: Readonly<Record<string, string>>, action: object) {
        const { post } = api(around.instance.origin, headers)
        const { json } = yield* post("/v1/me/credential-actions", action)
        const done = yield* post(`/v1/me/credential-actions/${json.intent_id}/complete`, {
          proof: { type: "confirm", acknowledged: true },
        })
        assert.strictEqual(done.status, 200, done.text)
        return done.json
      })

      const [mine, second, third, unseen, late] = yield* Effect.all(["a", "b", "c", "d", "e"].map(session))
      for (const headers of [mine!, second!, third!]) assert.deepStrictEqual(yield* says(headers), [200, 200])
      const { json } = yield* api(around.instance.origin, second!).get("/v1/me/sessions")
      const { session_id } = json.items.find((one: { current: boolean }) => one.current)
      const revoked = yield* act(mine!, { kind: "session.revoke", target_id: session_id })
      assert.strictEqual(revoked.sessions_revoked, 1)
      assert.deepStrictEqual(yield* says(second!), ["invalid_token", "invalid_token"])
      assert.deepStrictEqual(yield* says(third!), [200, 200])

      // A session seen by the other process alone, which may end before it has written the session's row.
      assert.strictEqual((yield* api(other.origin, late!).get("/v1/me")).status, 200)
      yield* act(mine!, { kind: "sessions.revoke_others" })
      // Also sessions of earlier sign-ins that no process had seen.
      for (const headers of [third!, unseen!, late!]) {
        assert.deepStrictEqual(yield* says(headers), ["invalid_token", "invalid_token"])
      }
      assert.deepStrictEqual(yield* says(mine!), [200, 200])

      // Products are told once of each session that a process had seen.
      const told = around.rows(`
        select sub_id -> 'session' ->> 'id' as sid from lifecycle_events
        where kind = 'session-revoked' and sub_id ? 'session' order by sid`)
      const heard = yield* until("the end of what was seen", told, (rows) => rows.length >= 3)
      assert.deepStrictEqual(heard, [{ sid: "b" }, { sid: "c" }, { sid: "e" }])

      yield* other.end("SIGKILL")
      yield* other.start()
      for (const headers of [second!, third!, unseen!]) {
        assert.deepStrictEqual(yield* says(headers), ["invalid_token", "invalid_token"])
      }
      assert.deepStrictEqual(yield* says(mine!), [200, 200])

      yield* around.apply({
        kind: "person",
        id: ids.pat,
        version: Date.now(),
        issuer: demoIssuer,
        subject: "pat",
        status: "suspended",
        display_name: `Pat ${randomUUID()}`,
      })
      assert.deepStrictEqual(yield* says(mine!), ["invalid_token", "invalid_token"])
    }).pipe(Effect.scoped))
})
