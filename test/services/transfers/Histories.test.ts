/** Random histories of the real service beside the plain model: `TRANSFER_HISTORIES` says how many. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { randomUUID } from "node:crypto"
import process from "node:process"
import { Database } from "../../../services/platform/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { Model, type Role, type Transfer } from "./Model.ts"
import {
  accept,
  accountLine,
  codeOf,
  command,
  day,
  domainLine,
  feed,
  force,
  noon,
  offer,
  type Person,
  seatLine,
  timed,
  world,
} from "./TransferWorld.ts"

const histories = Number(process.env["TRANSFER_HISTORIES"] ?? 60)
const persons = 4
const admin = 3
const domains = 2

type Services = Layer.Success<ReturnType<typeof world>>

interface Real {
  readonly people: ReadonlyArray<Person>
  readonly domains: ReadonlyArray<string>
  readonly seats: ReadonlyArray<ReadonlyArray<string>>
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Promise<A>
}

interface Asked {
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
const check = Effect.fnUntraced(function* (model: Model, real: Real) {
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

class Step implements fc.AsyncCommand<Model, Real> {
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

/** The newest first, live ones before the others: those are the interesting ones. */
const at = (model: Model, pick: number): Transfer | undefined => {
  const isLive = ({ status }: Transfer) => status === "pending" || status === "accepted"
  const newest = model.transfers.toReversed()
  const all = [...newest.filter(isLive), ...newest.filter((t) => !isLive(t))]
  return all.length === 0 ? undefined : all[pick % all.length]
}

const who = fc.nat(persons - 1)
const where = fc.nat(domains - 1)
const which = fc.constantFrom(0, 0, 0, 1, 1, 2, 3)

const onTransfer = (
  name: string,
  pick: number,
  model: (model: Model, t: Transfer) => string,
  real: (t: Transfer, real: Real) => Effect.Effect<string, unknown, Services>,
): Step =>
  new Step({
    name: `${name} #${pick}`,
    model: (state) => {
      const t = at(state, pick)
      return t && model(state, t)
    },
    real: (world, state) => {
      const t = at(state, pick)
      return t === undefined ? Effect.succeed("nothing") : real(t, world)
    },
  })

const changed = (name: string, model: (model: Model) => void, real: Asked["real"]) =>
  new Step({
    name,
    model: (state) => {
      model(state)
      return "done"
    },
    real,
  })

const party = (name: "decline" | "cancel") =>
  fc.tuple(who, which).map(([who, pick]) =>
    onTransfer(
      `${name} by ${who}`,
      pick,
      (model, t) => model[name](who, t),
      ({ id: transferId }, { people }) =>
        Effect.gen(function* () {
          const transfers = yield* Transfers
          const asked = { ...command(), accountId: people[who]!.id, transferId }
          return yield* name === "decline" ? codeOf(transfers.decline(asked)) : codeOf(transfers.cancel(asked))
        }),
    )
  )

const steps: ReadonlyArray<fc.Arbitrary<Step>> = [
  fc.tuple(who, where, who).map(([from, d, to]) =>
    new Step({
      name: `initiate ${d} by ${from} to ${to}`,
      model: (model) => model.initiate(from, d, to),
      real: ({ domains, people }) => codeOf(offer(people[from]!.id, domains[d]!, people[to]!.email)),
    })
  ),
  fc.tuple(who, which, fc.boolean(), fc.option(who)).map(([who, pick, byToken, org]) =>
    onTransfer(
      `accept by ${who}${byToken ? " by token" : ""} into ${org}`,
      pick,
      (model, t) => model.accept(who, t, byToken, org),
      ({ id }, { people }) =>
        codeOf(accept(people[who]!.id, id, { byToken, orgId: org === null ? null : people[org]!.workspaceId })),
    )
  ),
  // The right person, so that histories get somewhere.
  ...Array(4).fill(
    fc.tuple(where, who).map(([d, to]) =>
      new Step({
        name: `initiate ${d} by its owner to ${to}`,
        model: (model) => model.initiate(model.domains[d]!.owner, d, to),
        real: ({ domains, people }, model) =>
          codeOf(offer(people[model.domains[d]!.owner]!.id, domains[d]!, people[to]!.email)),
      })
    ),
  ),
  ...Array(4).fill(
    fc.boolean().map((byToken) =>
      new Step({
        name: "accept by its recipient",
        model: (model) => {
          const t = at(model, 0)
          return t && model.accept(t.target, t, byToken, null)
        },
        real: ({ people }, model) => {
          const t = at(model, 0)
          return t === undefined ? Effect.succeed("nothing") : codeOf(accept(people[t.target]!.id, t.id, { byToken }))
        },
      })
    ),
  ),
  party("decline"),
  party("cancel"),
  which.map((pick) =>
    onTransfer(
      "stop",
      pick,
      (model, t) => model.stop(t),
      ({ id: transferId }) =>
        Effect.flatMap(Transfers, (transfers) => codeOf(transfers.stop({ ...command(), transferId }))),
    )
  ),
  fc.tuple(where, who, fc.boolean()).map(([d, to, rotate]) =>
    new Step({
      name: `force ${d} to ${to}`,
      model: (model) => model.people[admin]!.active ? model.force(d, admin, to) : undefined,
      real: ({ domains, people }) => codeOf(force(people[admin]!.id, domains[d]!, people[to]!.email, rotate)),
    })
  ),
  fc.constantFrom(1, day - 1, day, day + 1, 7 * day - 1, 7 * day).map((millis) =>
    changed(
      `${millis} ms go by`,
      (model) => void (model.now += millis),
      () => Effect.as(TestClock.adjust(millis), "done"),
    )
  ),
  fc.constant(changed(
    "timers fire",
    (model) => model.transfers.forEach((t) => model.settle(t)),
    (_, model) =>
      Effect.gen(function* () {
        const transfers = yield* Transfers
        const ids = model.transfers.map(({ id }) => id)
        yield* Effect.forEach(ids, transfers.settle, { discard: true })
        return "done"
      }),
  )),
  fc.tuple(who, fc.constantFrom(-1, 0, 1, 2, 3)).map(([n, limit]) =>
    changed(
      `limit of ${n} is ${limit}`,
      (model) => void (model.people[n]!.limit = limit),
      ({ people }, model) => Effect.as(feed(line(people[n]!, { ...model.people[n]!, limit })), "done"),
    )
  ),
  fc.tuple(fc.nat(persons - 2), fc.boolean()).map(([n, active]) =>
    changed(
      `${n} is ${active ? "active" : "disabled"}`,
      (model) => void (model.people[n]!.active = active),
      ({ people }, model) => Effect.as(feed(line(people[n]!, { ...model.people[n]!, active })), "done"),
    )
  ),
  fc.tuple(who, who, fc.constantFrom<Role | null>("admin", "member", "owner", null)).map(([n, org, role]) =>
    changed(
      `${n} is ${role} of ${org}`,
      ({ people }) => void (role === null ? people[n]!.seats.delete(org) : people[n]!.seats.set(org, role)),
      ({ people, seats }) => {
        const id = seats[n]![org]!
        const removal = { kind: "workspace_membership", id, removed: true }
        return Effect.as(
          feed(role === null ? removal : seatLine(id, people[org]!.workspaceId, people[n]!.id, role)),
          "done",
        )
      },
    )
  ),
  fc.tuple(where, who, fc.constantFrom(true, true, false)).map(([d, owner, verified]) =>
    changed(
      `the feed gives ${d} to ${owner}, ${verified ? "verified" : "unverified"}`,
      (model) => model.feed(d, owner, verified),
      ({ domains, people }) =>
        Effect.as(feed(domainLine(domains[d]!, people[owner]!, verified ? {} : { verified_at: null })), "done"),
    )
  ),
]

const line = ({ id }: Person, { active, limit }: { readonly active: boolean; readonly limit: number }) =>
  accountLine(id, { plan: "pro", domain_limit: limit, status: active ? "active" : "disabled" })

const setup = Effect.gen(function* () {
  const people = Array.from({ length: persons }, () => {
    const id = randomUUID()
    return { id, email: `${id}@example.com`, workspaceId: randomUUID() }
  })
  const ids = Array.from({ length: domains }, () => randomUUID()).sort()
  const seats = people.map(() => people.map(() => randomUUID()))
  yield* feed(
    ...people.map((person) => line(person, { active: true, limit: 2 })),
    ...people.map(({ workspaceId: id }, n) => ({
      kind: "workspace",
      id,
      name: "W",
      created_at: `202${n}-01-01T00:00:00Z`,
    })),
    ...people.map(({ id, workspaceId }, n) => seatLine(seats[n]![n]!, workspaceId, id, "owner")),
    ...ids.map((id) => domainLine(id, people[0]!)),
  )
  const context = yield* Effect.context<Services>()
  const run = Effect.runPromiseWith(context)
  return { people, domains: ids, seats, run } satisfies Real
})

layer(world(), { excludeTestServices: true, timeout: "60 seconds" })("histories", (it) => {
  it.effect(
    `${histories} random histories: every answer and every row as the model has them`,
    () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Services>())
        const history = (commands: Iterable<Step>) =>
          timed(Effect.gen(function* () {
            const real = yield* setup
            yield* Effect.promise(() =>
              fc.asyncModelRun(() => ({ model: new Model(noon, persons, domains), real }), commands)
            )
          }))
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(
              fc.commands([...steps], { maxCommands: 20, size: "max" }),
              (commands) => run(history(commands as Iterable<Step>)),
            ),
            { numRuns: histories },
          )
        )
      }),
    { timeout: 120_000 + histories * 3_000 },
  )
})
