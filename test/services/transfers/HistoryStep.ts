/** One step of a history, run on the model and on the real service; compares the answers and all rows. */
import { assert } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type fc from "fast-check"
import type { DomainId, TransferId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import type { Model } from "./Model.ts"
import type { fixture, Person } from "./TransferFixture.ts"

export const persons = 4
export const admin = 3
export const domains = 2

export type Services = Layer.Success<ReturnType<typeof fixture>>

export interface Real {
  readonly people: ReadonlyArray<Person>
  readonly domains: ReadonlyArray<DomainId>
  readonly seats: ReadonlyArray<ReadonlyArray<string>>
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Promise<A>
}

export interface Asked {
  readonly name: string
  /** The model's answer, or undefined if the step does not apply. */
  readonly model: (model: Model) => string | undefined
  readonly real: (real: Real, model: Model) => Effect.Effect<string, unknown, Services>
}

interface Row {
  readonly id: TransferId
  readonly status: string
  readonly target_org_id: string | null
  readonly timers: number
  readonly source: number
  readonly target: number
  readonly messages: number
}

interface Seen {
  readonly transfers: ReadonlyArray<Row>
  readonly domains: ReadonlyArray<unknown>
  /** Domains with two messages at one position of their order. */
  readonly disordered: number
}

const isLive = (status: string) => status === "pending" || status === "accepted"

/** The rows of a history, in one statement, since 5,000 histories read them about 50,000 times. */
const readRows = Effect.fnUntraced(function* ({ domains }: Real) {
  const { sql } = yield* Database
  const audits = (side: string) =>
    sql`(select count(*)::int from audit_records a where a.subject = 'account:' || ${sql.literal(`t.${side}_user_id`)}
      and a.details->>'transfer_id' = t.id::text and a.details->>'side' = ${side})`
  const unpublished = sql`(select id::text as domain_id from unnest(${[...domains]}::uuid[]) d(id)) d
    join outbox o on o.aggregate_id = d.domain_id and o.lane = (hashtext(d.domain_id) & 15) and o.published_at is null`
  const [row] = yield* sql<Seen>`
    with messages as materialized (
      select d.domain_id, o.seq, o.payload::json->>'id' as id from ${unpublished}
    )
    select (
      select coalesce(json_agg(json_build_object('id', t.id, 'status', t.status, 'target_org_id', t.target_org_id,
        'timers', (select count(*)::int from timers where aggregate_id = t.id::text
          and due_at = case t.status when 'pending' then t.expires_at else t.cooloff_until end),
        'source', ${audits("source")}, 'target', ${audits("target")},
        'messages', (select count(*)::int from messages m where m.id = t.id::text)) order by t.id), '[]')
      from transfers t where t.domain_id = any(${[...domains]}::uuid[])
    ) as transfers, (
      select json_agg(json_build_object('account_id', account_id, 'workspace_id', workspace_id, 'held', owner_held)
        order by id)
      from domains where id = any(${[...domains]}::uuid[])
    ) as domains, (
      select count(*)::int from (
        select from messages group by domain_id having count(*) <> count(distinct seq)) odd
    ) as disordered`
  return row!
})

/** Asserts everything that must hold after each step. */
const check = (model: Model, real: Real, { disordered, domains, transfers }: Seen) => {
  const expected = model.transfers.map((t): Row => ({
    id: t.id,
    status: t.status,
    target_org_id: t.org === null ? null : real.people[t.org]!.workspaceId,
    timers: isLive(t.status) ? 1 : 0,
    source: t.changes,
    target: t.changes,
    messages: t.changes,
  }))
  assert.deepStrictEqual(transfers, expected)
  assert.deepStrictEqual(
    domains,
    model.domains.map(({ held, org, owner }) => ({
      account_id: real.people[owner]!.id,
      workspace_id: real.people[org]!.workspaceId,
      held,
    })),
  )
  assert.strictEqual(disordered, 0)
  for (const n of real.domains.keys()) {
    assert.isAtMost(model.transfers.filter(({ domain, status }) => domain === n && isLive(status)).length, 1)
  }
}

export class Step implements fc.AsyncCommand<Model, Real> {
  readonly asked: Asked
  constructor(asked: Asked) {
    this.asked = asked
  }
  check() {
    return true
  }
  run(model: Model, real: Real) {
    const { asked } = this
    return real.run(Effect.gen(function* () {
      const past = new Map(model.transfers.map(({ id, status }) => [id, status]))
      // The effect is built before the model changes, and run unless the step does not apply.
      const effect = asked.real(real, model)
      const expected = asked.model(model)
      if (expected === undefined) return
      assert.strictEqual(yield* effect, expected, asked.name)
      const seen = yield* readRows(real)
      // Copies the ids of new transfers into the model.
      model.transfers.forEach((t, n) => t.id = t.id === "" ? seen.transfers[n]?.id ?? t.id : t.id)
      for (const { id, status } of model.transfers) {
        const was = past.get(id)
        if (was !== undefined && !isLive(was)) assert.strictEqual(status, was)
      }
      check(model, real, seen)
    }))
  }
  toString() {
    return this.asked.name
  }
}
