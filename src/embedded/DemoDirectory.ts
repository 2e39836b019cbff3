/**
 * The demo directory: three accounts and an institution with its people, all with stable ids. They are put into an
 * empty database once, marked in `demo_rows`, and disabled by every start without DEMO while no other process serves
 * the demo. `demo.json` in the home holds their ids and API keys. Where it is gone, or one of its keys no longer works,
 * new keys are made, since the old ones cannot be read from the database.
 */
import { Effect, Option, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { AccountId, type ApiKeyId } from "../../schemas/BrandedIds.ts"
import type { Principal } from "../../schemas/api/CredentialsApi.ts"
import type { Plan } from "../../schemas/mail/MailAccount.ts"
import { ApiKeys } from "../../services/accounts/ApiKeys.ts"
import { hashOf } from "../../services/authentication/Principals.ts"
import { Directory } from "../../services/directory/Directory.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { WorkerHeartbeats } from "../../services/platform/observability/WorkerHeartbeats.ts"
import { demoIdentityFile, demoIdentityLines, demoPeople } from "./DemoIdentity.ts"
import { writePrivate } from "./Home.ts"

const uuid = (n: number) => `0199c0de-0000-7000-8000-${String(n).padStart(12, "0")}`

/** Ids of the demo, the same in every installation. */
export const demoIds = {
  alice: AccountId.make(uuid(1)),
  bob: AccountId.make(uuid(2)),
  carol: AccountId.make(uuid(3)),
  alder: uuid(11),
  birch: uuid(12),
  alderMembership: uuid(21),
  birchMembership: uuid(22),
  alderDomain: uuid(31),
} as const

const since = "2025-01-01T00:00:00.000Z"

const people = {
  alice: { email: "alice@alder.example", name: "Alice", plan: "business", platform_admin: false },
  bob: { email: "bob@birch.example", name: "Bob", plan: "free", platform_admin: false },
  carol: { email: "carol@platform.example", name: "Carol", plan: "pro", platform_admin: true },
} as const satisfies Record<string, { email: string; name: string; plan: Plan; platform_admin: boolean }>

/** The accounts that the sign-in page of the demo offers. */
export const demoAccounts = (["alice", "bob", "carol"] as const).map((who) => ({
  id: demoIds[who],
  name: people[who].name,
  email: people[who].email,
}))

const lines = [
  ...(["alice", "bob", "carol"] as const).map((who) => ({
    kind: "account",
    id: demoIds[who],
    ...people[who],
    status: "active",
  })),
  { kind: "workspace", id: demoIds.alder, name: "Alder", created_at: since },
  { kind: "workspace", id: demoIds.birch, name: "Birch", created_at: since },
  {
    kind: "workspace_membership",
    id: demoIds.alderMembership,
    workspace_id: demoIds.alder,
    account_id: demoIds.alice,
    role: "owner",
  },
  {
    kind: "workspace_membership",
    id: demoIds.birchMembership,
    workspace_id: demoIds.birch,
    account_id: demoIds.bob,
    role: "owner",
  },
  {
    kind: "domain",
    id: demoIds.alderDomain,
    name: "alder.example",
    account_id: demoIds.alice,
    workspace_id: demoIds.alder,
    verified_at: since,
    dkim_selector: "demo",
  },
]

const principal = (who: keyof typeof people): Principal["Service"] => ({
  accountId: demoIds[who],
  plan: people[who].plan,
  platformAdmin: people[who].platform_admin,
  via: "cookie",
  keyId: null,
  authTime: null,
})

const mark = Effect.fnUntraced(function* (rows: ReadonlyArray<{ readonly kind: string; readonly id: string }>) {
  const { sql } = yield* Database
  yield* sql`insert into demo_rows (kind, id)
    select kind, id from jsonb_to_recordset(${sql.json(rows.map(({ kind, id }) => ({ kind, id })))})
      as row (kind text, id uuid)
    on conflict do nothing`
})

/**
 * Makes a key, and revokes the demo's older ones: keys whose secrets are lost would use up the two that bob may have.
 */
const newKey = Effect.fnUntraced(function* (who: keyof typeof people) {
  const keys = yield* ApiKeys
  const { sql } = yield* Database
  const old = yield* sql<{ id: ApiKeyId }>`
    select k.id::text as id from api_keys k join demo_rows d on d.kind = 'api_key' and d.id = k.id
    where k.account_id = ${demoIds[who]}::uuid and k.is_active`
  for (const { id } of old) yield* keys.revoke(principal(who), id)
  const made = yield* keys.create(principal(who), { name: "Demo", permissions: ["send"] })
  yield* mark([{ kind: "api_key", id: made.id }])
  return made.key
})

const show = (who: keyof typeof people) => ({
  id: demoIds[who],
  email: people[who].email,
  plan: people[who].plan,
})

const writeDemo = Effect.fnUntraced(function* (path: string) {
  const demo = {
    accounts: {
      alice: {
        ...show("alice"),
        workspace_id: demoIds.alder,
        domain_id: demoIds.alderDomain,
        domain: "alder.example",
        api_key: yield* newKey("alice"),
      },
      bob: { ...show("bob"), workspace_id: demoIds.birch, api_key: yield* newKey("bob") },
      carol: { ...show("carol"), platform_admin: true },
    },
    ...demoIdentityFile,
  }
  yield* Effect.sync(() => writePrivate(path, `${JSON.stringify(demo, null, 2)}\n`))
})

/** The name under which a process that serves the demo reports itself (WorkerSightings). */
const served = "demo"

/** The name of the demo's file in the home. */
export const demoFile = "demo.json"

const Holder = Schema.Struct({ api_key: Schema.String })
const decodeKeys = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ accounts: Schema.Struct({ alice: Holder, bob: Holder }) })),
)

/** Whether demo.json holds two keys that still work. */
const isUsable = Effect.fnUntraced(function* (path: string) {
  const { sql } = yield* Database
  const text = yield* Effect.option(Effect.try(() => readFileSync(path, "utf8")))
  const file = Option.flatMap(text, decodeKeys)
  if (Option.isNone(file)) return false
  const { alice, bob } = file.value.accounts
  const [found] = yield* sql<{ alive: number }>`
    select count(*)::int as alive from api_keys
    where is_active and ((account_id = ${demoIds.alice}::uuid and hash = ${hashOf(alice.api_key)})
      or (account_id = ${demoIds.bob}::uuid and hash = ${hashOf(bob.api_key)}))`
  return found!.alive === 2
})

const put = Effect.fnUntraced(function* (lines: ReadonlyArray<object>) {
  const results = yield* (yield* Directory).apply(lines.map((line) => JSON.stringify({ version: 1, ...line })))
  const refused = results.find(({ _tag }) => _tag === "rejected")
  if (refused !== undefined) return yield* Effect.die(new Error(`The demo was refused: ${JSON.stringify(refused)}`))
})

/** Marks rows of the demo that a start without it disabled. Rows that were disabled for another reason stay so. */
const off = (kind: "account" | "person") => `${kind}_off`

const unmark = Effect.fnUntraced(function* (kind: "account" | "person") {
  const { sql } = yield* Database
  yield* sql`delete from demo_rows where kind = ${off(kind)}`
})

/** Goes through the directory, so that the projects of these people receive the events. */
const setPeople = Effect.fnUntraced(function* (status: "active" | "disabled", kind: string) {
  const { sql } = yield* Database
  const other = yield* sql<{ id: string; version: bigint }>`
    select p.id, p.version from people p join demo_rows d on d.kind = ${kind} and d.id::text = p.id
    where p.status = ${status === "active" ? "disabled" : "active"} and not p.removed`
  const versions = new Map(other.map(({ id, version }) => [id, Number(version)]))
  const lines = demoPeople.flatMap((person) => {
    const version = versions.get(person.id)
    return version === undefined ? [] : [{ ...person, status, version: version + 1 }]
  })
  if (status === "disabled") yield* mark(lines.map(({ id }) => ({ kind: off("person"), id })))
  yield* put(lines)
})

const switchOn = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`update accounts set status = 'active'
    where id in (select id from demo_rows where kind = ${off("account")}) and status = 'disabled'`
  yield* unmark("account")
  yield* setPeople("active", off("person"))
  yield* unmark("person")
})

/**
 * With DEMO: fills a database that has neither accounts nor people, enables an older demo again (a demo of accounts
 * alone gets its people), and writes `demo.json` where it is missing or a key in it no longer works. Returns whether
 * there is a demo: a database with other accounts or people gets none.
 */
export const fillDemo = Effect.fn("DemoDirectory.fill")(function* (home: string, instance: string) {
  const { sql } = yield* Database
  const [found] = yield* sql<{ accounts: boolean; people: boolean; demo: boolean }>`
    select exists (select from accounts) as accounts, exists (select from people) as people,
      exists (select from demo_rows) as demo`
  const { accounts, demo, people } = found!
  if (!demo && (accounts || people)) return false
  // First of all: a start without DEMO at the same time then leaves the demo alone.
  yield* WorkerHeartbeats.begun(instance, served)
  const missing = [...(accounts ? [] : lines), ...(people ? [] : demoIdentityLines)]
  if (missing.length > 0) {
    yield* mark(missing)
    yield* put(missing)
  }
  yield* switchOn
  const path = join(home, demoFile)
  if (missing.length > 0 || !(yield* isUsable(path))) yield* writeDemo(path)
  return true
}, Effect.orDie)

/** Disables the accounts and people of the demo. */
export const disableDemo = Effect.gen(function* () {
  const { sql } = yield* Database
  // In one statement: an account that is disabled without its mark would stay disabled for ever.
  yield* sql`
    with ended as (
      update accounts set status = 'disabled'
      where id in (select id from demo_rows where kind = 'account') and status = 'active' returning id
    )
    insert into demo_rows (kind, id) select ${off("account")}, id from ended on conflict do nothing`
  yield* setPeople("disabled", "person")
}).pipe(Effect.orDie, Effect.withSpan("DemoDirectory.disable"))

const lookMillis = 30_000
/** A process that was seen within this time may be about to start again. */
const goneMillis = 60_000

/** Waits until no process serves the demo, then disables it. */
const disableLater = Effect.gen(function* () {
  if (yield* WorkerHeartbeats.seen(served, goneMillis)) return false
  yield* disableDemo
  yield* Effect.logWarning("no process serves the demo of this database any more: its keys and people are disabled")
  return true
}).pipe(
  Effect.catchCause((cause) => Effect.as(Effect.logWarning("the demo could not be disabled", cause), false)),
  Effect.delay(lookMillis),
  Effect.repeat({ until: (done) => done }),
)

/** Without DEMO: disables the demo, at once or as soon as no other process serves it. */
export const endDemo = Effect.gen(function* () {
  if (!(yield* WorkerHeartbeats.seen(served))) return yield* disableDemo
  yield* Effect.logWarning(
    "another process serves the demo of this database (DEMO=true): its keys and people stay until that process is gone",
  )
  yield* Effect.forkScoped(disableLater)
}).pipe(Effect.orDie)
