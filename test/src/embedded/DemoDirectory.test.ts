import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { WorkerHeartbeats } from "../../../services/platform/observability/WorkerHeartbeats.ts"
import { demoFile, demoIds, disableDemo, endDemo, fillDemo } from "../../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer, issuerKeyFile } from "../../../src/embedded/EmbeddedIssuer.ts"
import { account } from "../../support/TestAccounts.ts"
import { identity, person } from "../../support/TestIdentity.ts"

const services = ApiKeys.layer.pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provide(Cookies.layer([])),
  Layer.provideMerge(identity),
)

const home = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-home-"))),
  (home) => Effect.sync(() => rmSync(home, { recursive: true })),
)

interface Demo {
  readonly accounts: Record<"alice" | "bob" | "carol", { readonly id: string; readonly api_key?: string }>
}
const demoIn = (home: string) => JSON.parse(readFileSync(join(home, demoFile), "utf8")) as Demo
const byKey = (key: string | undefined) =>
  Effect.gen(function* () {
    const { authenticate, present } = yield* Principals
    return yield* authenticate(yield* present({ authorization: `Bearer ${key}`, cookie: undefined }))
  })
const refusal = (key: string | undefined) => Effect.map(Effect.flip(byKey(key)), ({ _tag }) => _tag)

layer(services)("DemoDirectory", (it) => {
  it.effect("fills an empty database once; a start without DEMO locks its people out, one with DEMO lets them in", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const { sql } = yield* Database
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      assert.strictEqual(statSync(join(folder, demoFile)).mode & 0o777, 0o600)
      const { accounts } = demoIn(folder)
      const alice = yield* byKey(accounts.alice.api_key)
      assert.deepStrictEqual([alice.accountId, alice.plan], [demoIds.alice, "business"])
      const bob = yield* byKey(accounts.bob.api_key)
      assert.deepStrictEqual([bob.accountId, bob.plan], [demoIds.bob, "free"])
      const [domain] = yield* sql`
        select d.name, a.name as owner, w.name as workspace, a.platform_admin, d.verified_at is not null as verified
        from domains d join accounts a on a.id = d.account_id join workspaces w on w.id = d.workspace_id
        join workspace_memberships m on m.workspace_id = w.id and m.account_id = a.id and m.role = 'owner'`
      assert.deepStrictEqual(domain, {
        name: "alder.example",
        owner: "Alice",
        workspace: "Alder",
        platform_admin: false,
        verified: true,
      })
      const admins = yield* sql`select id::text from accounts where platform_admin`
      assert.deepStrictEqual([...admins], [{ id: demoIds.carol }])

      const before = readFileSync(join(folder, demoFile), "utf8")
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      assert.strictEqual(readFileSync(join(folder, demoFile), "utf8"), before)

      yield* disableDemo
      assert.strictEqual(yield* refusal(accounts.alice.api_key), "InvalidCredentials")
      const real = yield* account({ plan: "free" })
      yield* disableDemo
      const [other] = yield* sql`select status from accounts where id = ${real}::uuid`
      assert.strictEqual(other!["status"], "active")
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      yield* byKey(accounts.alice.api_key)

      for (let i = 0; i < 3; i++) {
        rmSync(join(folder, demoFile))
        assert.isTrue(yield* fillDemo(folder, randomUUID()))
      }
      yield* byKey(demoIn(folder).accounts.bob.api_key)
      assert.strictEqual(yield* refusal(accounts.bob.api_key), "InvalidCredentials")
    }).pipe(Effect.scoped))
})

layer(services, { excludeTestServices: true })("DemoDirectory beside a process that serves the demo", (it) => {
  it.effect("a start without DEMO waits until the demo's process has been gone for a minute", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const { sql } = yield* Database
      const active = Effect.map(
        sql<{ n: number }>`select (select count(*)::int from accounts where status = 'active')
          + (select count(*)::int from people where status = 'active') as n`,
        ([row]) => row!.n,
      )
      yield* TestClock.setTime(1_772_000_000_000)
      const instance = randomUUID()
      assert.isTrue(yield* fillDemo(folder, instance))
      yield* endDemo
      for (let turn = 0; turn < 20; turn++) {
        yield* TestClock.adjust("10 seconds")
        yield* WorkerHeartbeats.begun(instance, "demo")
      }
      assert.strictEqual(yield* active, 9)
      yield* byKey(demoIn(folder).accounts.alice.api_key)

      // The demo's process is silent from here on.
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(yield* active, 9)
      yield* Effect.repeat(Effect.andThen(TestClock.adjust("10 seconds"), active), { until: (n) => n === 0 })

      // No process serves the demo now: the next start does not wait.
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      yield* sql`update worker_sightings set stopped = true`
      yield* endDemo
      assert.strictEqual(yield* active, 0)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer())))
})

layer(services)("DemoDirectory cut off while it is disabled", (it) => {
  it.effect("a start without DEMO disables no account that DEMO would not enable again", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const { owner } = yield* Database
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      yield* owner`alter table demo_rows add constraint cut_off check (kind <> 'account_off') not valid`
      assert.isTrue(Exit.isFailure(yield* Effect.exit(disableDemo)))
      yield* owner`alter table demo_rows drop constraint cut_off`
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      yield* byKey(demoIn(folder).accounts.alice.api_key)
    }).pipe(Effect.scoped))
})

layer(services)("DemoDirectory's file", (it) => {
  it.effect("is made again where one of its keys is revoked, or its file is unreadable", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const other = yield* home
      const { sql } = yield* Database
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      const first = demoIn(folder).accounts
      // Another home on the same database makes keys of its own, which revokes these.
      assert.isTrue(yield* fillDemo(other, randomUUID()))
      assert.strictEqual(yield* refusal(first.bob.api_key), "InvalidCredentials")
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      const second = demoIn(folder).accounts
      for (const { api_key } of [second.alice, second.bob]) yield* byKey(api_key)

      yield* sql`update api_keys set is_active = false, revoked_at = ${new Date()} where account_id = ${demoIds.bob}`
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      yield* byKey(demoIn(folder).accounts.bob.api_key)
      for (const text of ["", "{}"]) {
        writeFileSync(join(folder, demoFile), text)
        assert.isTrue(yield* fillDemo(folder, randomUUID()))
        yield* byKey(demoIn(folder).accounts.alice.api_key)
      }
    }).pipe(Effect.scoped))
})

const fernPortal = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ kind: string }>`
    select kind from lifecycle_events where project_id = ${demoIdentityIds.fernPortal} order by position`
  return rows.map(({ kind }) => kind)
})

layer(services)("DemoDirectory's people", (it) => {
  it.effect("has an institution with people, and products are told when the demo is switched off and on", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const { sql } = yield* Database
      assert.isTrue(yield* fillDemo(folder, randomUUID()))
      const roles = yield* sql`
        select p.display_name, m.role from institutions i join institution_memberships m on m.institution_id = i.id
        join people p on p.id = m.person_id where i.name = 'Fern' and m.state = 'active' order by m.id`
      assert.deepStrictEqual(roles.map(({ display_name, role }) => [display_name, role]), [
        ["Sam", "sponsor"],
        ["Ada", "administrator"],
        ["Abe", "administrator"],
      ])
      const operators = yield* sql`select id from people where operator`
      assert.deepStrictEqual([...operators], [{ id: demoIdentityIds.oz }])
      const { people } = JSON.parse(readFileSync(join(folder, demoFile), "utf8"))
      assert.deepStrictEqual(people.pat, {
        id: demoIdentityIds.pat,
        issuer: "https://demo.bailiwick.example",
        subject: "pat",
        email: "pat@fern.example",
      })
      const begun = yield* fernPortal
      assert.deepStrictEqual(begun, [
        "project-registered",
        "project-launched",
        "project-owner-changed",
        "access-granted",
      ])
      yield* fillDemo(folder, randomUUID())
      assert.deepStrictEqual(yield* fernPortal, begun)
      yield* disableDemo
      yield* disableDemo
      assert.lengthOf(yield* sql`select from people where status = 'active'`, 0)
      yield* fillDemo(folder, randomUUID())
      assert.lengthOf(yield* sql`select from people where status = 'active'`, 6)
      // Sam owns the portal and pat uses it.
      assert.deepStrictEqual((yield* fernPortal).slice(begun.length), [
        "account-disabled",
        "account-disabled",
        "account-enabled",
        "account-enabled",
      ])

      // A person disabled by another hand stays disabled at every start.
      const statuses = sql`
        select status from people where id in (${demoIdentityIds.pat}, ${demoIdentityIds.ada}) order by display_name`
      yield* sql`update people set status = 'suspended' where id = ${demoIdentityIds.pat}`
      yield* sql`update people set status = 'disabled' where id = ${demoIdentityIds.ada}`
      const taken = [{ status: "disabled" }, { status: "suspended" }]
      yield* fillDemo(folder, randomUUID())
      assert.deepStrictEqual([...yield* statuses], taken)
      yield* disableDemo
      yield* fillDemo(folder, randomUUID())
      assert.deepStrictEqual([...yield* statuses], taken)
      assert.lengthOf(yield* sql`select from people where status = 'active'`, 4)
    }).pipe(Effect.scoped))
})

layer(services)("DemoDirectory beside real people", (it) => {
  it.effect("is not put into a database that has people", () =>
    Effect.gen(function* () {
      const folder = yield* home
      yield* person()
      assert.isFalse(yield* fillDemo(folder, randomUUID()))
      yield* disableDemo
      const { sql } = yield* Database
      assert.deepStrictEqual([...(yield* sql`select status from people`)], [{ status: "active" }])
    }).pipe(Effect.scoped))
})

layer(services)("DemoDirectory beside real accounts", (it) => {
  it.effect("is not put into a database that has accounts", () =>
    Effect.gen(function* () {
      const folder = yield* home
      yield* account({ plan: "free" })
      assert.isFalse(yield* fillDemo(folder, randomUUID()))
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from accounts`, 1)
    }).pipe(Effect.scoped))
})

layer(Layer.empty)("EmbeddedIssuer", (it) => {
  it.effect("keeps its key in the home, for this user alone, and signs cookies that Cookies accepts", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const issuer = { home: folder, issuer: "http://127.0.0.1:8080/dev/issuer" }
      const minted = yield* Effect.flatMap(EmbeddedIssuer, ({ jwks, mintSession }) =>
        Effect.map(
          mintSession({ accountId: demoIds.alice, authTime: -30, ttl: "5 minutes" }),
          (token) => ({ jwks, token }),
        )).pipe(Effect.provide(EmbeddedIssuer.layer(issuer)))
      assert.strictEqual(statSync(join(folder, issuerKeyFile)).mode & 0o777, 0o600)
      assert.notProperty(minted.jwks.keys[0], "d")
      const again = EmbeddedIssuer.layer(issuer)
      const verified = yield* Effect.flatMap(
        EmbeddedIssuer,
        ({ cookieIssuer }) =>
          Effect.flatMap(Cookies, ({ verify }) => verify(minted.token)).pipe(
            Effect.provide(Cookies.layer([cookieIssuer])),
          ),
      )
        .pipe(Effect.provide(again))
      assert.deepStrictEqual(verified, { accountId: demoIds.alice, authTime: -30 })
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    }).pipe(Effect.scoped))
})
