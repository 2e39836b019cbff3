/** One step of a history: done by the model and by the real service, compared in its answer and in every row. */
import { assert } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type fc from "fast-check"
import { Database } from "../../../services/platform/Database.ts"
import type { Model } from "./Model.ts"
import type { Person, world } from "./TransferWorld.ts"

export const persons = 4
export const admin = 3
export const domains = 2

export type Services = Layer.Success<ReturnType<typeof world>>

export interface Real {
  readonly people: ReadonlyArray<Person>
  readonly domains: ReadonlyArray<string>
  readonly seats: ReadonlyArray<ReadonlyArray<string>>
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Promise<A>
}

export interface Asked {
  readonly name: string
  /** What the model says, or undefined where there is nothing to do it on. */
  readonly model: (model: Model) => string | undefined
  readonly real: (real: Real, model: Model) => Effect.Effect<string, unknown, Services>
}

interface Row {
  readonly id: string
  readonly status: string
  readonly target_org_id: string | null
  readonly timers: number
  readonly audits: number
  readonly messages: number
}

/** Everything that must hold after every step. */
export const check = Effect.fnUntraced(function* (model: Model, real: Real) {
  const { sql } = yield* Database
  const rows = yield* sql<Row>`
    select t.id::text as id, status, target_org_id::text as target_org_id,
      (select count(*)::int from timers where aggregate_id = t.id::text
        and due_at = case t.status when 'pending' then t.expires_at else t.cooloff_until end) as timers,
      (select count(*)::int from audit_records a where a.subject in (
        'account:' || t.source_user_id, 'account:' || t.target_user_id)
        and a.details->>'transfer_id' = t.id::text) as audits,
      (select count(*)::int from outbox where aggregate_id = t.domain_id::text
        and payload::json->>'id' = t.id::text) as messages
    from transfers t where domain_id = any(${[...real.domains]}::uuid[]) order by t.id`
  const shown = rows.map((row) => ({ ...row }))
  assert.deepStrictEqual(
    shown,
    model.transfers.map((t) => ({
      id: t.id,
      status: t.status,
      target_org_id: t.org === null ? null : real.people[t.org]!.workspaceId,
      timers: t.status === "pending" || t.status === "accepted" ? 1 : 0,
      audits: 2 * t.changes,
      messages: t.changes,
    })),
  )
  const owners = yield* sql<{ account_id: string; workspace_id: string; held: boolean }>`
    select account_id::text as account_id, workspace_id::text as workspace_id, owner_held as held from domains
    where id = any(${[...real.domains]}::uuid[]) order by id`
  assert.deepStrictEqual(
    owners.map((row) => ({ ...row })),
    model.domains.map(({ held, org, owner }) => ({
      account_id: real.people[owner]!.id,
      workspace_id: real.people[org]!.workspaceId,
      held,
    })),
  )
  const order = yield* sql<{ n: number; seqs: number }>`
    select count(*)::int as n, count(distinct seq)::int as seqs from outbox
    where aggregate_id = any(${[...real.domains]}::text[]) group by aggregate_id`
  for (const { n, seqs } of order) assert.strictEqual(n, seqs)
})

export class Step implements fc.AsyncCommand<Model, Real> {
  readonly asked: Asked
  constructor(asked: Asked) {
    this.asked = asked
  }
  check() {
    return true
  }
  async run(model: Model, real: Real) {
    const before = model.transfers.length
    // The real first: what it makes has the ids that the model then learns.
    const { expected, happened } = await real.run(Effect.gen({ self: this }, function* () {
      const past = structuredClone(model.transfers)
      const effect = this.asked.real(real, model)
      const expected = this.asked.model(model)
      if (expected === undefined) return { expected, happened: expected }
      const happened = yield* effect
      for (const { id, status } of past) {
        const now = model.transfers.find((t) => t.id === id)!
        if (!["pending", "accepted"].includes(status)) assert.strictEqual(now.status, status)
      }
      return { expected, happened }
    }))
    assert.strictEqual(happened, expected, this.toString())
    await real.run(Effect.gen(function* () {
      const { sql } = yield* Database
      const made = model.transfers.slice(before)
      const fresh = yield* sql<{ id: string }>`
        select id::text as id from transfers where domain_id = any(${[...real.domains]}::uuid[])
        order by id desc limit ${made.length}`
      made.reverse().forEach((t, i) => void (t.id = fresh[i]!.id))
      yield* check(model, real)
    }))
  }
  toString() {
    return this.asked.name
  }
}
