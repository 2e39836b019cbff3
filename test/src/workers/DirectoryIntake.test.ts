import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { directorySubject, identityDirectorySubject } from "../../../schemas/bus/DirectoryMessages.ts"
import { accountsTopic } from "../../../services/accounts/MailKinds.ts"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { RejectedMessages } from "../../../services/platform/messaging/RejectedMessages.ts"
import { DirectoryIntake } from "../../../src/workers/DirectoryIntake.ts"
import { account } from "../../support/DirectoryLines.ts"
import { ground } from "../../support/TestAccounts.ts"
import { identity } from "../../support/TestIdentity.ts"

/** Servers of each test's own: the stream's messages and the rejected ones are counted from their beginning. */
const services = RejectedMessages.layer.pipe(Layer.provideMerge(ground))

const arrived = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  return (yield* sql`select from accounts where id = ${id}::uuid`).length === 1
})

describe("DirectoryIntake", () => {
  it.live("good lines are applied, bad ones set aside, and kinds of a newer program left, without a stop", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const { sql } = yield* Database
      const waiter = yield* (yield* WakeUps).waiter(accountsTopic)
      yield* bus.heal
      const [first, last, operator] = [randomUUID(), randomUUID(), randomUUID()]
      const publications: ReadonlyArray<readonly [string, string | Uint8Array]> = [
        [directorySubject("account"), account(first, 2, { name: "newer" })],
        [directorySubject("account"), account(first, 1, { name: "older" })],
        [directorySubject("account"), "{"],
        [directorySubject("account"), new Uint8Array([0xff, 0xfe, 0x00])],
        [directorySubject("account"), "[".repeat(60_000)],
        // The publisher of workspaces may not make accounts.
        [directorySubject("workspace"), account(operator, 1, { platform_admin: true })],
        [directorySubject("person"), JSON.stringify({ kind: "person", id: operator, version: 1 })],
        [directorySubject("account"), account(last, 1)],
      ]
      for (const [subject, data] of publications) yield* bus.publish(subject, data)
      yield* Layer.build(DirectoryIntake.layer({ identity: "plain" }))
      while (!(yield* arrived(last))) yield* waiter.wait(30_000)
      // One batch at a time: once a later one is applied, all of the first one was judged and recorded.
      const next = randomUUID()
      yield* bus.publish(directorySubject("account"), account(next, 1))
      while (!(yield* arrived(next))) yield* waiter.wait(30_000)
      const accounts = yield* sql`select id::text, name from accounts where ${sql.in("id", [first, last, operator])}`
      assert.deepStrictEqual(
        accounts.map(({ id, name }) => [id, name]).sort(),
        [[first, "newer"], [last, "A"]].sort(),
      )
      const rejects = yield* sql`
        select stream_seq, subject, reason, state from intake_rejects order by stream_seq`
      assert.deepStrictEqual(
        rejects.map(({ stream_seq, subject, reason, state }) => [Number(stream_seq), subject, reason, state]),
        [
          [3, directorySubject("account"), "malformed_json", "rejected"],
          [4, directorySubject("account"), "malformed_json", "rejected"],
          [5, directorySubject("account"), "too_deep", "rejected"],
          [6, directorySubject("workspace"), "wrong_kind", "rejected"],
        ],
      )
    }).pipe(Effect.scoped, Effect.provide(services)))

  it.live("a message that is redelivered is set aside once", () =>
    Effect.gen(function* () {
      const rejects = yield* RejectedMessages
      const { sql } = yield* Database
      const until = new Date((yield* Clock.currentTimeMillis) + 1_000)
      const reject = {
        stream: "EVENTS",
        seq: 7,
        subject: "intake.v1.mail-events.sent",
        reason: "unknown_account",
        detail: "nul \u0000",
        payload: new TextEncoder().encode("x".repeat(70_000)),
        waiting: { accountId: AccountId.make("a1"), until },
      } as const
      yield* rejects.add([reject])
      yield* rejects.add([reject, { ...reject, seq: 8 }])
      const rows = yield* sql`
        select stream_seq, state, account_id, octet_length(payload) as size, expires_at
        from intake_rejects where stream = 'EVENTS' order by stream_seq`
      assert.deepStrictEqual(
        [...rows],
        [7n, 8n].map((stream_seq) => ({
          stream_seq,
          state: "waiting",
          account_id: "a1",
          size: 65_536,
          expires_at: until,
        })),
      )
    }).pipe(Effect.provide(services)))
})

describe("DirectoryIntake, an hour later", () => {
  it.live("a kind of a newer program is set aside if none took it within the hour", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const { sql } = yield* Database
      const waiter = yield* (yield* WakeUps).waiter(accountsTopic)
      const id = randomUUID()
      yield* bus.heal
      yield* bus.publish(directorySubject("planet"), "{}")
      yield* bus.publish(directorySubject("account"), account(id, 1))
      const clock = yield* Clock.Clock
      const later: Clock.Clock = Object.create(clock, {
        currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (now) => now + 3_700_000) },
      })
      yield* Layer.build(DirectoryIntake.layer({ identity: "plain" })).pipe(Effect.provideService(Clock.Clock, later))
      while (!(yield* arrived(id))) yield* waiter.wait(30_000)
      const rows = yield* sql`select reason from intake_rejects where subject = ${directorySubject("planet")}`
      assert.deepStrictEqual([...rows], [{ reason: "unknown_kind" }])
    }).pipe(Effect.scoped, Effect.provide(services)))
})

describe(
  "DirectoryIntake of identities",
  () => {
    it.live("fields and lines that a publisher may not set are set aside, and the rest is applied", () =>
      Effect.gen(function* () {
        const bus = yield* Bus
        const { sql } = yield* Database
        yield* bus.heal
        const [fern, mallory] = [randomUUID(), randomUUID()]
        const publications = [
          ["person", mallory, {
            issuer: "https://id.example",
            subject: "m",
            display_name: "M",
            operator: true,
            auditor: true,
            status: "active",
          }],
          ["institution_membership", randomUUID(), {
            institution_id: fern,
            person_id: mallory,
            role: "sponsor",
            state: "active",
          }],
          ["project", randomUUID(), {
            institution_id: fern,
            name: "P",
            website: "https://p.example",
            environment: "staging",
            state: "registered",
          }],
        ] as const
        for (const [kind, id, fields] of publications) {
          yield* bus.publish(identityDirectorySubject(kind), JSON.stringify({ kind, id, version: 1, ...fields }))
        }
        // Kinds of the other family may not come on this subject.
        yield* bus.publish(identityDirectorySubject("project_link"), account(randomUUID(), 1))
        yield* Layer.build(DirectoryIntake.layer({ identity: "plain" }))
        const rejects = sql<{ subject: string; reason: string; detail: string }>`
          select subject, reason, detail from intake_rejects order by stream_seq`
        while ((yield* rejects).length < 3) yield* Effect.sleep("20 millis")
        assert.deepStrictEqual((yield* rejects).map(({ detail, reason, subject }) => [subject, reason, detail]), [
          [identityDirectorySubject("person"), "not_followed", "operator, auditor, status"],
          [identityDirectorySubject("institution_membership"), "not_followed", "kind institution_membership"],
          [identityDirectorySubject("project_link"), "wrong_kind", "kind account as project_link"],
        ])
        const people = yield* sql`select display_name, operator, auditor, status from people`
        assert.deepStrictEqual([...people], [{
          display_name: "M",
          operator: false,
          auditor: false,
          status: "suspended",
        }])
        assert.lengthOf(yield* sql`select from projects`, 1)
        assert.lengthOf(yield* sql`select from institution_memberships`, 0)
      }).pipe(Effect.scoped, Effect.provide(RejectedMessages.layer.pipe(Layer.provideMerge(identity)))))
  },
)
