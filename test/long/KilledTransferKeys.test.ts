/**
 * The program is killed with SIGKILL at each moment of a command on a transfer, without an answer to its client. The same
 * request to another process, under the same key, is answered as if nothing had happened, also where others have moved the
 * transfer on: the command was done once, with its audit records and receipt, or not at all.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Database } from "../../services/platform/database/Database.ts"
import type { TransferStep } from "../../services/platform/Failpoints.ts"
import { api, type ApiClient, type Reply } from "../e2e/support/ApiClient.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { until } from "../e2e/support/Until.ts"
import { home, start } from "../support/Processes.ts"
import { databaseOf } from "./support/Traffic.ts"

interface Party {
  readonly id: string
  readonly email: string
  readonly workspace: string
  readonly cookie: Readonly<Record<string, string>>
  readonly session: ApiClient
}

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly by: Party
}

interface Parties {
  readonly alice: Party
  readonly bob: Party
  readonly root: Party
}

const publish = (around: ProgramFixture, kind: string, id: string, fields: Readonly<Record<string, unknown>>) =>
  around.feed.publish(`intake.v1.directory.${kind}`, JSON.stringify({ kind, id, version: 1, ...fields }))

const party = Effect.fnUntraced(function* (around: ProgramFixture, platformAdmin = false) {
  const [id, workspace] = [randomUUID(), randomUUID()]
  const email = `${id}@example.com`
  yield* publish(around, "account", id, {
    email,
    name: "P",
    plan: "business",
    platform_admin: platformAdmin,
    status: "active",
  })
  yield* publish(around, "workspace", workspace, { name: "W", created_at: "2020-01-01T00:00:00Z" })
  yield* publish(around, "workspace_membership", randomUUID(), {
    workspace_id: workspace,
    account_id: id,
    role: "owner",
  })
  const cookie = yield* around.cookie(id, Math.floor(Date.now() / 1_000))
  const session = api(around.instance.origin, cookie)
  yield* until("the account", session.get("/v1/domain-transfers/incoming"), ({ status }) => status === 200)
  const eligible = Effect.map(session.get("/v1/domain-transfers/accept-eligibility"), ({ json }) => json.can_accept)
  yield* until("the plan", eligible, (can) => can === true)
  return { id, email, workspace, cookie, session } satisfies Party
})

const ask = (client: ApiClient, { body, method, path }: Request, headers: Readonly<Record<string, string>>) =>
  client.call(method, path, { headers, ...(body === undefined ? {} : { body }) })

/** Sends a request to a program that dies of it. */
const killed = Effect.fnUntraced(function* (around: ProgramFixture, point: string, request: Request, key: string) {
  const doomed = yield* start({
    module: "test/long/support/FaultMain.ts",
    env: {
      ...around.env,
      ROLES: "api,actors",
      BAILIWICK_HOME: yield* home,
      FAULT: `${point}:1`,
      BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
    },
  })
  const [, origin] = yield* doomed.line(/bailiwick ready on (http:\S+)/)
  const sent = ask(api(() => origin!, request.by.cookie), request, { "idempotency-key": key })
  assert.isTrue(Exit.isFailure(yield* Effect.exit(sent)), "no answer")
  assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
}, Effect.scoped)

const transferOf = (reply: Reply) => {
  assert.strictEqual(reply.status, 200, reply.text)
  return reply.json as { readonly id: string; readonly status: string }
}

const by = (id: string) => `/v1/domain-transfers/by-id/${id}/accept`

/** The commands; `after` moves the transfer on, as others do between a kill and the repetition. */
const commands: Readonly<
  Record<Exclude<TransferStep, "clock" | "stop">, {
    readonly event: string
    readonly status: string
    readonly request: (people: Parties, domainId: string, transferId: string) => Request
    readonly after?: (people: Parties, domainId: string, transferId: string) => Request
  }>
> = {
  initiate: {
    event: "initiated",
    status: "pending",
    request: ({ alice, bob }, domainId) => ({
      method: "POST",
      path: `/v1/domains/${domainId}/transfer`,
      body: { target_email: bob.email },
      by: alice,
    }),
    after: ({ bob }, _, id) => ({ method: "POST", path: `/v1/domain-transfers/${id}/decline`, by: bob }),
  },
  accept: {
    event: "accepted",
    status: "accepted",
    request: ({ bob }, _, id) => ({ method: "POST", path: by(id), body: { rotate_dkim: true }, by: bob }),
    after: ({ bob, root }, domainId) => ({
      method: "POST",
      path: `/v1/admin/domain-transfers/${domainId}`,
      body: { target_email: bob.email },
      by: root,
    }),
  },
  decline: {
    event: "declined",
    status: "declined",
    request: ({ bob }, _, id) => ({ method: "POST", path: `/v1/domain-transfers/${id}/decline`, by: bob }),
  },
  cancel: {
    event: "cancelled",
    status: "cancelled",
    request: ({ alice }, _, id) => ({ method: "DELETE", path: `/v1/domain-transfers/${id}`, by: alice }),
  },
  force: {
    event: "forced",
    status: "completed",
    request: ({ bob, root }, domainId) => ({
      method: "POST",
      path: `/v1/admin/domain-transfers/${domainId}`,
      body: { target_email: bob.email },
      by: root,
    }),
  },
}

const survived = Effect.fnUntraced(function* (
  around: ProgramFixture,
  people: Parties,
  step: keyof typeof commands,
  point: "written" | "committed",
) {
  const { sql } = yield* Database
  const { alice, bob } = people
  const { after, event, request: requestOf, status } = commands[step]
  const what = `${step} ${point}`
  const domainId = randomUUID()
  yield* publish(around, "domain", domainId, {
    name: `d-${domainId}.example`,
    account_id: alice.id,
    workspace_id: alice.workspace,
    verified_at: "2025-01-01T00:00:00Z",
    dkim_selector: "old",
  })
  yield* until("the domain", alice.session.get(`/v1/domains/${domainId}/dkim`), ({ status }) => status === 200)
  const opens = step === "initiate" || step === "force"
  const path = `/v1/domains/${domainId}/transfer`
  const offered = opens ? "" : transferOf(yield* alice.session.post(path, { target_email: bob.email })).id
  const request = requestOf(people, domainId, offered)
  const transfers = sql<{ id: string; status: string }>`
    select id::text as id, status from transfers where domain_id = ${domainId}::uuid order by id`
  const records = Effect.map(
    sql<{ n: number }>`
      select count(*)::int as n from audit_records
      where action = ${`domain-transfer.${event}`} and details ->> 'domain_id' = ${domainId}`,
    ([row]) => row!.n,
  )

  const key = randomUUID()
  yield* killed(around, `transfer.${step}.${point}`, request, key)
  const done = point === "committed"
  const [row] = yield* transfers
  assert.strictEqual(row?.status, done ? status : opens ? undefined : "pending", what)
  assert.strictEqual(yield* records, done ? 2 : 0, what)
  if (done && after !== undefined) {
    const moved = after(people, domainId, row!.id)
    transferOf(yield* ask(moved.by.session, moved, {}))
  }
  const before = done ? yield* transfers : null
  const answers: Array<Reply> = []
  for (const replayed of [done, true]) {
    const reply = yield* ask(request.by.session, request, { "idempotency-key": key })
    answers.push(reply)
    assert.strictEqual(transferOf(reply).status, status, what)
    assert.strictEqual(reply.headers.get("idempotency-replayed"), replayed ? "true" : null, what)
  }
  assert.strictEqual(answers[0]!.text, answers[1]!.text, what)
  if (before !== null) assert.deepStrictEqual(yield* transfers, before, what)
  assert.strictEqual(yield* records, 2, what)
  const receipts = yield* sql`select from idempotency_receipts where key = ${key}`
  assert.lengthOf(receipts, 1, what)
})

describe("commands on transfers, killed", () => {
  it.live("are done once, or not at all, and a repeated key is answered the same", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ INITIATE_TRANSFER_RATE: "10000" })
      const people = { alice: yield* party(around), bob: yield* party(around), root: yield* party(around, true) }
      yield* Effect.forEach(Object.keys(commands) as Array<keyof typeof commands>, (step) =>
        Effect.forEach(["written", "committed"] as const, (point) => survived(around, people, step, point))).pipe(
          Effect.provide(databaseOf(around)),
        )
    }).pipe(Effect.scoped), 600_000)
})
