/**
 * A database is lost and a backup restored in its place: nothing that was revoked after the backup is effective again,
 * at any moment, for anyone, and a product that follows ends with the program's state.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { decodeJwt } from "jose"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { entriesOf, type StateEntry } from "../../../sdk/EventProjection.ts"
import * as Ledger from "../../../sdk/Ledger.ts"
import { sqliteStore } from "../../../sdk/stores/Sqlite.ts"
import { demoIssuer } from "../../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import { reason } from "../../support/Fixtures.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api } from "../../e2e/support/ApiClient.ts"
import { fixture, type IdentityFixture, ids, product } from "../../e2e/support/ProgramIdentity.ts"
import { until } from "../../e2e/support/Until.ts"
import { accountLine } from "../../e2e/support/ProgramFixture.ts"

const someone = (subject: string, more: object = {}) => ({
  kind: "person",
  id: subject,
  version: 1,
  issuer: demoIssuer,
  subject,
  display_name: subject,
  email: `${subject}@fern.example`,
  email_verified: true,
  status: "active",
  ...more,
})
const accessLine = (id: string, person_id: string, more: object = {}) => ({
  kind: "access",
  id,
  version: 1,
  institution_id: ids.fern,
  project_id: ids.fernPortal,
  person_id,
  role: "user",
  state: "active",
  ...more,
})

const order = ({ group, id }: StateEntry) => `${group} ${id}`
const sorted = (facts: ReadonlyArray<StateEntry>) => [...facts].sort((a, b) => order(a) < order(b) ? -1 : 1)

/** The transmitter's current answer to the product's service. */
const told = Effect.fnUntraced(function* ({ instance, issuer }: IdentityFixture) {
  const token = yield* Effect.provide(
    Effect.flatMap(
      EmbeddedIssuer,
      ({ mintAccessToken }) =>
        mintAccessToken({ subject: "product", clientId: "product", audience: "service-lifecycle" }),
    ),
    issuer,
  )
  return yield* api(instance.origin, { authorization: `Bearer ${token}` })
    .get(`/v1/projects/${ids.fernPortal}/lifecycle/snapshot`)
})

const factsTold = (snapshot: string): ReadonlyArray<StateEntry> =>
  sorted(entriesOf((decodeJwt(snapshot) as { readonly state: Parameters<typeof entriesOf>[0] }).state))

const factsKnown = (file: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new DatabaseSync(file, { readOnly: true })),
    (database) => Effect.promise(() => sqliteStore(database).read(() => Ledger.facts(ids.fernPortal))),
    (database) => Effect.sync(() => database.close()),
  ).pipe(Effect.map(sorted))

describe("a backup in the place of a database", () => {
  it.live(
    "brings back nothing revoked since, and opens by itself once that is certain",
    () =>
      Effect.gen(function* () {
        const at = yield* fixture()
        yield* at.apply(
          ...["quinn", "ron", "uma"].map((name) => someone(name)),
          accessLine("a-quinn", "quinn"),
          accessLine("a-ron", "ron"),
          {
            kind: "project",
            id: "q",
            version: 1,
            institution_id: ids.fern,
            name: "Q",
            website: "https://q.example",
            environment: "production",
            state: "launched",
            redirect_uris: ["https://q.example/callback"],
          },
          { kind: "project_owner", id: "o-q", version: 1, project_id: "q", person_id: ids.sam },
          { kind: "project_owner", id: "o-uma", version: 1, project_id: ids.fernPortal, person_id: "uma" },
        )
        yield* at.grant("product")
        const [second, unsigned] = [yield* at.grant("second"), yield* at.grant("third")]
        const reviews = `/v1/institutions/${ids.fern}/access-grant-reviews`
        const { review_id } = yield* at.post("sam", reviews, { access_id: ids.patAccess, access_version: 1, reason })
        yield* at.post("ada", `${reviews}/${review_id}/approve`, { reason })
        const { accounts } = JSON.parse(readFileSync(join(at.home, "demo.json"), "utf8"))
        const alice = api(at.instance.origin, { authorization: `Bearer ${accounts.alice.api_key}` })
        const offered = yield* alice.post(`/v1/domains/${accounts.alice.domain_id}/transfer`, {
          target_email: accounts.bob.email,
        })
        assert.strictEqual(offered.status, 200, offered.text)
        const key = yield* alice.post("/v1/api-keys", { name: "ci", permissions: ["send"] })
        assert.strictEqual(key.status, 201, key.text)
        const shop = yield* product(at)
        yield* shop.enters("ron", "may")
        yield* shop.enters("quinn", "may")

        const file = join(at.home, "backup")
        const made = yield* at.type("backup", file)
        assert.strictEqual(made.code, 0, made.output)
        assert.match(made.output, /the key ring is not in it: keep k[0-9a-f]+ of /)
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)

        // By files and by the API, so that only the lifecycle's stream knows it.
        yield* at.apply(
          accessLine("a-ron", "ron", { version: 2, state: "revoked" }),
          someone("quinn", { version: 2, status: "disabled" }),
          someone("vic"),
          accessLine("a-vic", "vic"),
          accessLine("a-vic", "vic", { version: 2, state: "revoked" }),
        )
        yield* at.post("ada", `/v1/projects/${ids.fernPortal}/lifecycle-service-grants/${second}/revoke`, { reason })
        yield* at.post("ada", `${reviews}/${review_id}/revoke`, { reason })
        yield* at.post("ada", `/v1/projects/${ids.fernPortal}/owners`, { person_id: "uma", active: false, reason })
        const [q] = yield* at.rows<{ revision: number }>(`select revision from projects where id = 'q'`)
        const withdrawal = { expected_version: q!.revision, reason }
        yield* at.post("ada", `/v1/institutions/${ids.fern}/websites/q/withdraw`, withdrawal)
        assert.strictEqual((yield* alice.delete(`/v1/domain-transfers/${offered.json.id}`)).status, 200)
        assert.strictEqual((yield* alice.delete(`/v1/api-keys/${key.json.id}`)).status, 204)
        // And an event that came in on the bus.
        const late = randomUUID()
        yield* at.feed.publish("intake.v1.directory.account", accountLine(late))
        const arrived = at.rows<{ n: number }>(`select count(*)::int as n from accounts where id = $1`, [late])
        yield* until("the late account", arrived, ([row]) => row!.n === 1)
        yield* shop.enters("ron", "no_access")
        yield* shop.enters("quinn", "account_disabled")
        yield* at.published
        yield* at.instance.end("SIGKILL")

        // The database is gone. Without its keys a backup is useless, and restore says so before it writes anything.
        const { ownerUrl, url } = yield* TestDatabase.make
        const fresh = { DATABASE_URL: Redacted.value(url), DATABASE_OWNER_URL: Redacted.value(ownerUrl) }
        yield* at.use(fresh)
        const other = join(at.home, "other-keys.json")
        writeFileSync(other, JSON.stringify({ active: "o", keys: { o: Buffer.alloc(32, 7).toString("base64") } }), {
          mode: 0o600,
        })
        yield* at.use({ BAILIWICK_KEYS_FILE: other })
        const keyless = yield* at.type("restore", file)
        assert.deepInclude(keyless, { code: 1 })
        assert.match(keyless.output, /lacks key k[0-9a-f]+/)
        yield* at.use({ BAILIWICK_KEYS_FILE: "" })
        const put = yield* at.type("restore", file)
        assert.strictEqual(put.code, 0, put.output)
        assert.match((yield* at.type("restore", file)).output, /not empty/)

        // Recovery has not begun: the installation is held, shows states of the backup, but lets no revoked person act.
        yield* at.restart({ ...fresh, ROLES: "api,actors,relay,timers,intake,delivery,mail" })
        assert.match(
          (yield* at.type("installation", "show")).output,
          /^epoch 2, held since .*: the database was restored from a backup/,
        )
        assert.strictEqual((yield* at.api.get("/ready")).status, 200)
        yield* until("the product closed", shop.enter("pat"), (told) => told === "closed")
        assert.strictEqual((yield* told(at)).status, 503)
        const operator = until(
          "oz signed in anew",
          Effect.flatMap(at.as("oz"), (oz) => oz.get("/v1/operations/diagnostics")),
          ({ status }) => status === 200,
        )
        assert.deepInclude((yield* operator).json.installation, { epoch: 2, state: "held", held_reason: "restored" })
        const grants = `/v1/projects/${ids.fernPortal}/lifecycle-service-grants`
        const asked = yield* until(
          "sam signed in anew",
          Effect.flatMap(at.as("sam"), (sam) =>
            sam.post(grants, {
              service_id: "late",
              environment: "production",
              reason,
              capabilities: ["events.read"],
            }, { headers: { "idempotency-key": randomUUID() } })),
          ({ status }) => status === 201,
        )
        const held = yield* (yield* at.as("ada")).post(`${grants}/${asked.json.id}/approve`, {
          expected_version: 1,
          reason,
        }, { headers: { "idempotency-key": randomUUID() } })
        assert.deepInclude(held.json, { code: "held", status: 503, retry_after: 5 })
        const owners = `/v1/projects/${ids.fernPortal}/owners`
        const ask = { headers: { "idempotency-key": randomUUID() } }
        const owner = yield* (yield* at.as("ada")).post(owners, { person_id: "ron", active: true, reason }, ask)
        assert.deepInclude(owner.json, { code: "held", status: 503 })
        // Revocations are not held.
        yield* at.post("ada", `${grants}/${unsigned}/revoke`, { reason })
        assert.strictEqual(yield* shop.enter("ron"), "closed")
        yield* at.instance.end("SIGTERM")

        yield* at.restart({ ROLES: "all" })
        // The command is a program of its own: the row is looked at, and the command typed once.
        yield* until("open", at.rows<{ state: string }>(`select state from installation`), ([row]) =>
          row?.state === "open")
        assert.match((yield* at.type("installation", "show")).output, /^epoch 2, open/)
        assert.deepStrictEqual(
          yield* at.rows(`select id, state, state_decided from access where id like 'a-%' or id = $1 order by id`, [
            ids.patAccess,
          ]),
          [
            { id: ids.patAccess, state: "active", state_decided: false },
            { id: "a-quinn", state: "active", state_decided: false },
            { id: "a-ron", state: "revoked", state_decided: true },
            // People that the restored database does not know at all.
            { id: "a-vic", state: "revoked", state_decided: true },
          ],
        )
        assert.deepStrictEqual(yield* at.rows(`select status from people where id = 'quinn'`), [{ status: "disabled" }])
        assert.deepStrictEqual(
          yield* at.rows(`select service_id, state from service_grants where service_id <> 'late' order by service_id`),
          [
            { service_id: "product", state: "approved" },
            { service_id: "second", state: "revoked" },
            { service_id: "third", state: "revoked" },
          ],
        )
        assert.deepStrictEqual(yield* at.rows(`select state from access_reviews`), [{ state: "revoked" }])
        assert.deepStrictEqual(yield* at.rows(`select active from project_owners where id = 'o-uma'`), [{
          active: false,
        }])
        assert.deepStrictEqual(yield* at.rows(`select state from projects where id = 'q'`), [{ state: "withdrawn" }])
        assert.deepStrictEqual(yield* at.rows(`select status from transfers`), [{ status: "cancelled" }])
        assert.deepStrictEqual(yield* at.rows(`select is_active from api_keys where id = $1`, [key.json.id]), [{
          is_active: false,
        }])
        assert.deepStrictEqual(yield* arrived, [{ n: 1 }])
        // The feed's older line does not bring it back: the feed has to repeat our decision first.
        const said = yield* at.apply(
          ...[accessLine("a-ron", "ron", { version: 3 }), someone("quinn", { version: 3 })],
          ...[someone("vic"), accessLine("a-vic", "vic")],
        )
        for (const one of [1, 4]) {
          assert.include(said, `line ${one}: decided_here: state\n`)
        }
        assert.include(said, "applied 2, ignored 2, rejected 0")
        assert.deepStrictEqual(yield* at.rows(`select distinct state from access where id in ('a-ron', 'a-vic')`), [{
          state: "revoked",
        }])
        assert.deepStrictEqual(yield* at.rows(`select status from people where id = 'quinn'`), [{ status: "disabled" }])

        yield* shop.enters("pat", "may")
        yield* at.published
        assert.strictEqual(yield* shop.enter("pat", Math.floor(Date.now() / 1_000) - 3_600), "session_ended")
        assert.strictEqual(yield* shop.enter("ron"), "no_access")
        assert.strictEqual(yield* shop.enter("vic"), "no_access")
        assert.strictEqual(yield* shop.enter("quinn"), "account_disabled")
        assert.match(shop.output(), /"closed".*epoch/)
        assert.match(shop.output(), /"kind":"snapshot"/)
        const snapshot = factsTold((yield* told(at)).text)
        yield* until(
          "equal facts",
          factsKnown(shop.file),
          (known) =>
            JSON.stringify(known) === JSON.stringify(snapshot),
        )
      }),
    600_000,
  )
})
