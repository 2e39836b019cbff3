import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import type { AccessToken } from "../../../services/people/AccessTokens.ts"
import { prefixOf, Sightings } from "../../../services/people/Sightings.ts"
import { Database } from "../../../services/platform/Database.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const now = 1_800_000_000
const token = (sid: string | null, more: Partial<AccessToken> = {}): AccessToken => ({
  ...{ via: "person", issuer: "https://id.example", subject: "ada", clientId: "portal", jti: "t", sid },
  ...{ authTime: now - 60, acr: null, amr: ["pwd"], aal: "aal1", issuedAt: now - 60, expiresAt: now + 600 },
  ...more,
})
const here = { userAgent: "Portal/1", address: "192.0.2.77" }

layer(Sightings.layer.pipe(Layer.provideMerge(TestDatabase.layer)), { excludeTestServices: true })(
  "Sightings",
  (it) => {
    const rowOf = Effect.fnUntraced(function* (sid: string) {
      const { sql } = yield* Database
      const [row] = yield* sql<Record<string, unknown>>`select * from sessions where sid = ${sid}`
      return row
    })

    it.effect("a session's first token makes its row; later ones are written where they say something new", () =>
      Effect.gen(function* () {
        const { add, flush } = yield* Sightings
        yield* TestClock.setTime(now * 1_000)
        yield* add(token("a"), "ada", here, false)
        yield* add(token(null), "ada", here, false)
        yield* flush
        const first = yield* rowOf("a")
        assert.deepInclude(first, {
          ...{ person_id: "ada", client_id: "portal", aal: "aal1", amr: ["pwd"], ip_prefix: "192.0.2.0/24" },
          ...{ issued_at: new Date((now - 60) * 1_000), last_seen_at: new Date(now * 1_000), revoked_at: null },
        })
        yield* TestClock.adjust("10 seconds")
        yield* add(token("a"), "ada", { ...here, userAgent: "Portal/2" }, true)
        yield* flush
        assert.deepStrictEqual(yield* rowOf("a"), first)
        // Stepped up meanwhile, and the older token is still in use beside the new one.
        const stronger = { authTime: now + 10, issuedAt: now + 10, aal: "aal2", amr: ["pwd", "otp"] } as const
        yield* add(token("a", { ...stronger, expiresAt: now + 700 }), "ada", here, true)
        yield* flush
        yield* TestClock.adjust("40 seconds")
        yield* add(token("a"), "ada", here, true)
        yield* flush
        assert.deepInclude(yield* rowOf("a"), {
          ...{ id: first!["id"], aal: "aal2", amr: ["pwd", "otp"], expires_at: new Date((now + 700) * 1_000) },
          ...{ authenticated_at: new Date((now + 10) * 1_000), last_seen_at: new Date((now + 50) * 1_000) },
        })
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("a revoked session stays revoked, whatever is still noted of it", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { add, flush } = yield* Sightings
        yield* TestClock.setTime(now * 1_000)
        yield* add(token("r"), "ada", here, false)
        yield* flush
        yield* sql`update sessions set revoked_at = ${new Date(now * 1_000)} where sid = 'r'`
        const revoked = yield* rowOf("r")
        yield* TestClock.adjust("5 minutes")
        yield* add(token("r", { issuedAt: now + 200, expiresAt: now + 900 }), "ada", here, true)
        yield* flush
        assert.deepStrictEqual(yield* rowOf("r"), revoked)
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("what cannot be written waits", () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const { add, flush } = yield* Sightings
        yield* add(token("w"), "ada", here, false)
        yield* owner`alter table sessions rename to sessions_away`
        yield* flush
        yield* owner`alter table sessions_away rename to sessions`
        yield* flush
        assert.isDefined(yield* rowOf("w"))
      }))

    it.effect("who looks while it is written waits for it, and who goes away takes nothing along", () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const { add, settle } = yield* Sightings
        yield* add(token("seen"), "eve", here, false)
        const { gone, looks } = yield* Effect.gen(function* () {
          yield* owner`lock table sessions in share row exclusive mode`
          const first = yield* Effect.forkChild(settle("eve"))
          yield* owner`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
            Effect.filterOrFail((rows) => rows.length > 0),
            Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 300 }),
          )
          const looks = yield* Effect.forkChild(Effect.andThen(settle("eve"), rowOf("seen")))
          return { looks, gone: yield* Effect.forkChild(Fiber.interrupt(first)) }
        }).pipe(owner.withTransaction)
        assert.isDefined(yield* Fiber.join(looks))
        yield* Fiber.join(gone)
      }))

    it("an address is cut to its network", () => {
      const cut = [
        ["192.0.2.77", "192.0.2.0/24"],
        ["::ffff:192.0.2.77", "192.0.2.0/24"],
        ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
        ["2001:0db8:0001::6", "2001:db8:1::/48"],
        ["2001:db8::1", "2001:db8:0::/48"],
        ["fe80::1%eth0", "fe80:0:0::/48"],
        ["::1", "0:0:0::/48"],
        ["::", "0:0:0::/48"],
        ["unix", null],
        ["", null],
        [null, null],
      ] as const
      for (const [address, prefix] of cut) assert.strictEqual(prefixOf(address), prefix, String(address))
    })
  },
)
