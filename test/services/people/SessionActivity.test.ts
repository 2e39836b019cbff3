import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { PersonId } from "../../../schemas/BrandedIds.ts"
import type { AccessToken } from "../../../services/people/AccessTokens.ts"
import { Sessions } from "../../../services/people/Sessions.ts"
import { prefixOf, SessionActivity } from "../../../services/people/SessionActivity.ts"
import { SecurityEventFanout } from "../../../services/people/SecurityEventFanout.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { during, waits } from "../../src/http/identity/Interleave.ts"
import { sizeOf } from "../../support/SizeOf.ts"
import { access, identity, institution, person, project } from "../../support/TestIdentity.ts"

const now = 1_800_000_000
const token = (sid: string | null, more: Partial<AccessToken> = {}): AccessToken => ({
  via: "person",
  issuer: "https://id.example",
  subject: "ada",
  clientId: "portal",
  jti: "t",
  sid,
  authTime: now - 60,
  acr: null,
  amr: ["pwd"],
  aal: "aal1",
  issuedAt: now - 60,
  expiresAt: now + 600,
  ...more,
})
const [ada, eve] = [PersonId.make("ada"), PersonId.make("eve")]
const here = { userAgent: "Portal/1", address: "192.0.2.77" }

const fixture = Layer.merge(Sessions.layer, SecurityEventFanout.layer()).pipe(
  Layer.provideMerge(SessionActivity.layer),
  Layer.provideMerge(identity),
)

layer(fixture, { excludeTestServices: true })(
  "Sightings",
  (it) => {
    const rowOf = Effect.fnUntraced(function* (sid: string) {
      const { sql } = yield* Database
      const [row] = yield* sql<Record<string, unknown>>`select * from sessions where sid = ${sid}`
      return row
    })

    it.effect("a session's first token makes its row; later ones are written where they add something", () =>
      Effect.gen(function* () {
        const { add, flush } = yield* SessionActivity
        yield* TestClock.setTime(now * 1_000)
        yield* add(token("a"), ada, here, false)
        yield* add(token(null), ada, here, false)
        yield* flush
        const first = yield* rowOf("a")
        assert.deepInclude(first, {
          person_id: "ada",
          client_id: "portal",
          aal: "aal1",
          amr: ["pwd"],
          ip_prefix: "192.0.2.0/24",
          issued_at: new Date((now - 60) * 1_000),
          last_seen_at: new Date(now * 1_000),
          revoked_at: null,
        })
        yield* TestClock.adjust("10 seconds")
        yield* add(token("a"), ada, { ...here, userAgent: "Portal/2" }, true)
        yield* flush
        assert.deepStrictEqual(yield* rowOf("a"), first)
        // The session was stepped up; the older token is still used beside the new one.
        const stronger = { authTime: now + 10, issuedAt: now + 10, aal: "aal2", amr: ["pwd", "otp"] } as const
        yield* add(token("a", { ...stronger, expiresAt: now + 700 }), ada, here, true)
        yield* flush
        yield* TestClock.adjust("40 seconds")
        yield* add(token("a"), ada, here, true)
        yield* flush
        assert.deepInclude(yield* rowOf("a"), {
          id: first!["id"],
          aal: "aal2",
          amr: ["pwd", "otp"],
          expires_at: new Date((now + 700) * 1_000),
          authenticated_at: new Date((now + 10) * 1_000),
          last_seen_at: new Date((now + 50) * 1_000),
        })
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("at most 20,000 sessions wait to be written; a dropped one is written at its next request", () =>
      Effect.gen(function* () {
        const { add, flush } = yield* SessionActivity
        yield* TestClock.setTime(now * 1_000)
        yield* flush
        const agent = { ...here, userAgent: "x".repeat(8_000) }
        for (let n = 0; n < 20_500; n++) yield* add(token(`crowd ${n}`), ada, n === 20_499 ? agent : here, true)
        assert.strictEqual(yield* sizeOf("seen sessions"), 20_000)
        yield* flush
        assert.strictEqual(yield* sizeOf("seen sessions"), 0)
        assert.isUndefined(yield* rowOf("crowd 499"))
        assert.deepInclude(yield* rowOf("crowd 20499"), { user_agent: "x".repeat(256) })
        yield* add(token("crowd 0"), ada, here, true)
        yield* flush
        assert.isDefined(yield* rowOf("crowd 0"))
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("a revoked session stays revoked, through anything noted of it later", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { add, flush } = yield* SessionActivity
        yield* TestClock.setTime(now * 1_000)
        yield* add(token("r"), ada, here, false)
        yield* flush
        yield* sql`update sessions set revoked_at = ${new Date(now * 1_000)} where sid = 'r'`
        const revoked = yield* rowOf("r")
        yield* TestClock.adjust("5 minutes")
        yield* add(token("r", { issuedAt: now + 200, expiresAt: now + 900 }), ada, here, true)
        yield* flush
        assert.deepStrictEqual(yield* rowOf("r"), revoked)
      }).pipe(Effect.provide(TestClock.layer())))

    it.effect("a session ended before it was written is written as ended, and products are told once", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { add, flush } = yield* SessionActivity
        const { revokeOthers } = yield* Sessions
        const { worker } = yield* SecurityEventFanout
        const jobs = yield* Jobs
        const me = yield* person()
        const fern = yield* institution()
        const portal = yield* project(fern)
        yield* access(fern, portal, me)
        const at = Math.floor(Date.now() / 1_000)
        const ages = { late: -60, refreshed: -60, again: -60, mine: -60, later: 3_600 }
        const sid = (name: keyof typeof ages) => `${name} ${me}`
        const unsaid = { authTime: null, issuedAt: at - 60 }
        const noted = Effect.gen(function* () {
          for (const [name, age] of Object.entries(ages)) {
            yield* add(token(`${name} ${me}`, { authTime: at + age, issuedAt: at + age }), me, here, false)
          }
          // A refreshed token of a session without `auth_time`, and a second sign-in.
          yield* add(token(sid("refreshed"), unsaid), me, here, false)
          yield* add(token(sid("refreshed"), { ...unsaid, issuedAt: at + 3_600 }), me, here, false)
          yield* add(token(sid("again"), { authTime: at + 3_600, issuedAt: at + 3_600 }), me, here, false)
        })
        yield* noted
        // The flush waits for the revocation's commit before it looks for it.
        const [ended] = yield* during(
          Effect.andThen(
            sql`select from people where id = ${me} for no key update`,
            revokeOthers({ personId: me, issuer: "https://id.example", sid: sid("mine"), authTime: at - 60 }),
          ),
          flush,
        )
        assert.deepStrictEqual(ended, [])
        const [floor] = yield* sql<{ before: Date }>`select before from session_floors where person_id = ${me}`
        const rows = yield* sql<{ sid: string; revoked_at: Date | null }>`
          select sid, revoked_at from sessions where person_id = ${me}`
        assert.deepStrictEqual(
          new Map(rows.map((row) => [row.sid, row.revoked_at])),
          new Map(
            (["late", "refreshed", "again", "mine", "later"] as const).map((name) => [
              sid(name),
              name === "mine" || name === "later" ? null : floor!.before,
            ]),
          ),
        )
        // A second process that noted the same sessions writes and reports nothing more.
        yield* noted
        yield* flush
        while (yield* jobs.work([worker])) { /* as the upkeep worker does */ }
        const told = yield* sql<{ sid: string }>`
          select sub_id -> 'session' ->> 'id' as sid from lifecycle_events
          where project_id = ${portal} and kind = 'session-revoked'`
        assert.sameMembers(told.map((one) => one.sid), [sid("late"), sid("refreshed"), sid("again")])
      }))

    it.effect("a failed write is tried again", () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const { add, flush } = yield* SessionActivity
        yield* add(token("w"), ada, here, false)
        yield* owner`alter table sessions rename to sessions_away`
        yield* flush
        yield* owner`alter table sessions_away rename to sessions`
        yield* flush
        assert.isDefined(yield* rowOf("w"))
      }))

    it.effect("a reader waits for the write of a session, and an interrupted reader loses none", () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const { add, settle } = yield* SessionActivity
        yield* add(token("seen"), eve, here, false)
        const { gone, looks } = yield* Effect.gen(function* () {
          yield* owner`lock table sessions in share row exclusive mode`
          const first = yield* Effect.forkChild(settle(eve))
          yield* waits(1)
          const looks = yield* Effect.forkChild(Effect.andThen(settle(eve), rowOf("seen")))
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
