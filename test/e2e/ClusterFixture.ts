/** Fixture: processes that share actors, and accounts with a workspace and domains each, made over the bus. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../services/platform/database/Database.ts"
import { shards } from "../../src/actors/Cluster.ts"
import { databaseOf } from "../long/support/Traffic.ts"
import { api, type ApiClient } from "./support/ApiClient.ts"
import type { ProgramInstance } from "./support/ProgramInstance.ts"
import { until } from "./support/Until.ts"
import type { Account, ProgramFixture } from "./support/ProgramFixture.ts"

export interface Owner extends Account {
  readonly workspaceId: string
  readonly domains: ReadonlyArray<string>
  /** The same credential, sent to another process. */
  readonly at: (instance: ProgramInstance) => ApiClient
}

export const addressOf = (accountId: string) => `${accountId}@example.com`

const told = (fixture: ProgramFixture, kind: string, fields: object) =>
  fixture.feed.publish(`intake.v1.directory.${kind}`, JSON.stringify({ kind, version: 1, ...fields }))

/** An account that owns a workspace and `domains` verified domains in it; waits until it may use them. */
export const owner = Effect.fnUntraced(function* (fixture: ProgramFixture, domains: number): Effect.fn.Return<Owner> {
  const id = randomUUID()
  const workspaceId = randomUUID()
  const ids = Array.from({ length: domains }, () => randomUUID())
  yield* told(fixture, "workspace", { id: workspaceId, name: "W", created_at: "2026-01-01T00:00:00Z" })
  yield* told(fixture, "workspace_membership", {
    id: randomUUID(),
    workspace_id: workspaceId,
    account_id: id,
    role: "owner",
  })
  yield* Effect.forEach(ids, (domainId) =>
    told(fixture, "domain", {
      id: domainId,
      name: `${domainId}.example`,
      account_id: id,
      workspace_id: workspaceId,
      verified_at: "2026-01-01T00:00:00Z",
      dkim_selector: "s1",
    }), { concurrency: 32 })
  const account = yield* fixture.account({ id })
  yield* until(
    "the domains",
    account.session.get("/v1/domain-transfers/accept-eligibility"),
    ({ json }) => json.can_accept && json.current_domains === domains,
  ).pipe(Effect.orDie)
  return {
    ...account,
    workspaceId,
    domains: ids,
    at: (instance) => api(instance.origin, { authorization: `Bearer ${account.key}` }),
  }
})

/** Waits until the database shows that `processes` of them hold all shards between them. */
export const shared = Effect.fnUntraced(function* (fixture: ProgramFixture, processes: number) {
  yield* Effect.gen(function* () {
    const { sql } = yield* Database
    const held = sql<{ n: number }>`
      select count(*)::int as n from pg_locks l join pg_stat_activity a using (pid)
      where l.locktype = 'advisory' and l.granted and a.application_name = 'bailiwick cluster'
        and a.datname = current_database()
      group by a.pid`
    yield* until(
      `shards at ${processes} processes`,
      Effect.map(held, (rows) => rows.map(({ n }) => n)),
      (each) => each.length === processes && each.reduce((sum, n) => sum + n, 0) === shards,
    )
  }).pipe(Effect.provide(databaseOf(fixture)), Effect.orDie)
})

/** How many commands of this process no actor answered, so that the service was called directly. */
export const unanswered = (instance: ProgramInstance) =>
  instance.output().split(": calling the service directly").length - 1
