/**
 * The program is killed with SIGKILL while it makes a link for a frame, and while it deletes links and sessions that have
 * ended. After a restart the same request under its key is answered as docs/console.md says: one link was made, no
 * receipt has its token, and nothing opens or answers past its end, deleted or not.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Database } from "../../services/platform/database/Database.ts"
import type { DecisionFault } from "../../services/platform/Failpoints.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { type Account, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { until } from "../e2e/support/Until.ts"
import { start } from "../support/Processes.ts"
import { databaseOf } from "./support/Traffic.ts"

const module = "test/long/support/FaultMain.ts"
const linksPath = "/v1/console/embed-links"

const points: ReadonlyArray<DecisionFault> = ["decision.opened", "decision.written", "decision.committed"]

const making = (account: Account, key: string) =>
  account.api.post(linksPath, { expires_in: 600 }, { headers: { "idempotency-key": key } })

/** Opens the session of a link, as the frame's script does. */
const opening = (around: ProgramFixture, token: string) =>
  api(around.instance.origin, { "sec-fetch-site": "same-origin" }).post("/v1/console/embed-sessions", { token })

const tokenOf = (url: string) => new URL(url).hash.slice(1)

/** The status with which a session's read is answered. */
const reading = (around: ProgramFixture, session: string) =>
  Effect.map(
    api(around.instance.origin, { authorization: `Bearer ${session}` }).get("/v1/event-types"),
    ({ status }) => status,
  )

/** A link that was not opened yet, and one that was, with its session. */
const both = Effect.fnUntraced(function* (around: ProgramFixture, account: Account) {
  const make = Effect.map(Effect.suspend(() => making(account, randomUUID())), ({ json, status, text }) => {
    assert.strictEqual(status, 201, text)
    return tokenOf(json.url)
  })
  const opened = yield* opening(around, yield* make)
  assert.strictEqual(opened.status, 201, opened.text)
  return { link: yield* make, session: opened.json.token as string }
})

/** Makes the program kill itself at the failpoint, without a restart. */
const armed = Effect.fnUntraced(function* ({ home, instance }: ProgramFixture, fault: string) {
  writeFileSync(join(home, "fault"), fault)
  yield* instance.program().kill("SIGUSR2")
  yield* instance.program().line(new RegExp(`armed ${fault.split(":")[0]}\\n`))
})

/** The program with an account, and the program's database. */
const staged = <A, E>(
  test: (around: ProgramFixture, account: Account) => Effect.Effect<A, E, Database | Scope.Scope>,
) =>
  Effect.gen(function* () {
    const around = yield* fixture({ EMBED_ORIGINS: "https://app.example.com" }, { module })
    const account = yield* around.account()
    return yield* Effect.provide(test(around, account), databaseOf(around))
  }).pipe(Effect.scoped)

describe("links for frames, killed", () => {
  it.live("are made once, or not at all", () =>
    staged(Effect.fnUntraced(function* (around, account) {
      const { sql } = yield* Database
      const made = sql<{ n: number; end: Date }>`
        select count(*)::int as n, max(expires_at) as "end" from embed_links where account_id = ${account.id}::uuid`
      for (const point of points) {
        const [before] = yield* made
        const key = randomUUID()
        yield* armed(around, `${point}:1`)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(making(account, key))), "no answer")
        assert.isNull(yield* around.instance.end("SIGKILL"), "it has killed itself")
        const done = point === "decision.committed"
        const [after] = yield* made
        assert.strictEqual(after!.n, before!.n + (done ? 1 : 0), point)

        yield* around.instance.start()
        const answer = yield* making(account, key)
        const again = yield* making(account, key)
        const [last] = yield* made
        const end = last!.end.toISOString()
        const ofReceipt = [201, { url: null, expires_at: end }, "true"]
        const shown = [answer, again].map(({ headers, json, status }) => [
          status,
          json,
          headers.get("idempotency-replayed"),
        ])
        const url = answer.json.url
        assert.deepStrictEqual(
          shown,
          done ? [ofReceipt, ofReceipt] : [[201, { url, expires_at: end }, null], ofReceipt],
        )
        assert.strictEqual(last!.n, before!.n + 1, "one link")
        if (done) continue
        assert.deepStrictEqual(
          yield* Effect.all([opening(around, tokenOf(url)), opening(around, tokenOf(url))]).pipe(
            Effect.map((answers) => answers.map(({ status }) => status)),
          ),
          [201, 401],
          "it opens once",
        )
      }
      // A client whose answer was lost makes another link, under another key.
      const { json } = yield* making(account, randomUUID())
      assert.strictEqual((yield* opening(around, tokenOf(json.url))).status, 201)
    })), 600_000)

  it.live(
    "end at their time, whether or not their rows are deleted yet",
    () =>
      staged(Effect.fnUntraced(function* (around, account) {
        const { sql } = yield* Database
        const ended = yield* both(around, account)
        // The ends lie behind those of all rows below, so that the pruning takes these rows last.
        yield* sql`
        update embed_links set created_at = created_at - interval '2 hours', expires_at = created_at - interval '1 minute',
          session_ends_at = case when session_hash is not null then created_at - interval '1 minute' end`
        yield* sql`
        insert into embed_links (id, account_id, key_id, token_hash, created_at, expires_at)
        select u, l.account_id, l.key_id, sha256(u::text::bytea), l.created_at, l.created_at
        from (select * from embed_links limit 1) l, lateral (select gen_random_uuid() as u, n from
          generate_series(1, 3500) n) made`
        const lasting = yield* both(around, account)
        const left = Effect.map(sql<{ n: number }>`select count(*)::int as n from embed_links`, ([row]) => row!.n)
        assert.strictEqual(yield* left, 3_504)
        const usable = Effect.gen(function* () {
          assert.strictEqual((yield* opening(around, ended.link)).status, 401, "the link has ended")
          assert.strictEqual(yield* reading(around, ended.session), 401, "the session has ended")
          assert.strictEqual(yield* reading(around, lasting.session), 200, "the other session lasts")
        })
        yield* around.instance.end("SIGTERM")

        yield* Effect.scoped(Effect.gen(function* () {
          const doomed = yield* start({ module, env: { ...around.env, FAULT: "prune.committed:2" } })
          assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
        }))
        assert.strictEqual(yield* left, 1_504, "two batches of a thousand")

        // A process that deletes nothing: the rows are there, and count for nothing.
        yield* around.instance.start({ FAULT: "", ROLES: "api" })
        yield* usable
        assert.strictEqual(yield* left, 1_504)
        yield* around.instance.end("SIGTERM")

        yield* around.instance.start({ ROLES: "all" })
        yield* until("the ended rows are gone", left, (n) => n === 2)
        yield* usable
        assert.strictEqual((yield* opening(around, lasting.link)).status, 201, "the other link opens")
      })),
    600_000,
  )
})
