/**
 * Two commands at once (forced and due transitions among them), with their round trips in any order: their answers and
 * rows are those of one after the other, in the order in which they ended. Each is stopped between its load and its
 * write; a single transaction runs as a whole.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { randomUUID } from "node:crypto"
import { AccountId, DomainId, type TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { BeforeWrite } from "../../../services/platform/database/FencedWrite.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  accountLine,
  codeOf,
  command,
  domainLine,
  feed,
  fixture,
  force,
  offer,
  type Person,
  seatLine,
  timed,
} from "./TransferFixture.ts"

type Services = Layer.Success<ReturnType<typeof fixture>>
type Step<A = string> = Effect.Effect<A, unknown, Services>

const names = ["alice", "bob", "carol", "eve", "root"] as const
type Name = (typeof names)[number]

interface Stage {
  readonly people: Readonly<Record<Name, Person>>
  /** Two domains of Alice. */
  readonly domains: readonly [DomainId, DomainId]
  readonly seats: Readonly<Record<"bob" | "carol", string>>
  /** The transfers that were offered before, if any. */
  readonly offered: ReadonlyArray<TransferId>
}

const limited = { domain_limit: 1 }

const credentialLine = (id: string, domainId: string, owner: Person) => ({
  kind: "smtp_credential",
  id,
  domain_id: domainId,
  account_id: owner.id,
  username: "sender",
})

/** Carol administers Alice's workspace; Bob has room for one domain. */
const stage = Effect.gen(function* () {
  const made = names.map((name): [Name, Person] => {
    const id = AccountId.make(randomUUID())
    return [name, { id, email: `${id}@example.com`, workspaceId: WorkspaceId.make(randomUUID()) }]
  })
  const people = Object.fromEntries(made) as Stage["people"]
  const [carol, bob] = [randomUUID(), randomUUID()]
  const [first, second] = [randomUUID(), randomUUID()].sort()
  const domains = [DomainId.make(first!), DomainId.make(second!)] as const
  yield* feed(
    ...made.map(([name, { id }]) => accountLine(id, name === "bob" ? limited : { plan: "pro" })),
    ...made.map(([, { workspaceId: id }]) => ({
      kind: "workspace",
      id,
      name: "W",
      created_at: "2020-01-01T00:00:00.000Z",
    })),
    ...made.map(([name, { id, workspaceId }]) =>
      seatLine(name === "bob" ? bob : randomUUID(), workspaceId, id, "owner")
    ),
    seatLine(carol, people.alice.workspaceId, people.carol.id, "admin"),
    ...domains.map((id) => domainLine(id, people.alice)),
    credentialLine(randomUUID(), domains[0], people.alice),
  )
  return { people, domains, seats: { bob, carol }, offered: [] } satisfies Stage
})

const offers = Effect.fnUntraced(function* (set: Stage) {
  const { alice, bob } = set.people
  const offered = yield* Effect.forEach(set.domains, (id) => Effect.map(offer(alice.id, id, bob.email), ({ id }) => id))
  return { ...set, offered } satisfies Stage
})

const accepts = Effect.fnUntraced(function* (set: Stage) {
  yield* accept(set.people.bob.id, set.offered[0]!)
  return set
})

/** The situations in which the two commands begin. */
const setups: Readonly<Record<string, Effect.Effect<Stage, unknown, Services>>> = {
  fresh: stage,
  offered: Effect.flatMap(stage, offers),
  accepted: stage.pipe(Effect.flatMap(offers), Effect.flatMap(accepts)),
  due: stage.pipe(Effect.flatMap(offers), Effect.flatMap(accepts), Effect.tap(() => TestClock.adjust(day))),
  settled: stage.pipe(
    Effect.flatMap(offers),
    Effect.flatMap(accepts),
    Effect.tap(() => TestClock.adjust(day)),
    Effect.tap(({ offered }) => Effect.flatMap(Transfers, ({ settle }) => settle(offered[0]!))),
  ),
}

type Action = (stage: Stage) => Step

const byParty = (name: "decline" | "cancel", who: Name, n: number): Action => ({ offered, people }) =>
  Effect.flatMap(Transfers, ({ cancel, decline }) => {
    const asked = { ...command(), accountId: people[who].id, transferId: offered[n]! }
    return name === "cancel" ? codeOf(cancel(asked)) : codeOf(decline(asked))
  })
const offering = (who: Name, n: number, to: Name): Action => ({ domains, people }) =>
  codeOf(offer(people[who].id, domains[n]!, people[to].email))
const accepting = (n: number, byToken = false): Action => ({ offered, people }) =>
  codeOf(accept(people.bob.id, offered[n]!, { byToken }))
const stopping: Action = ({ offered }) =>
  Effect.flatMap(Transfers, (transfers) => codeOf(transfers.stop({ ...command(), transferId: offered[0]! })))

const forcing = (n: number, to: Name, rotateDkim = false): Action => ({ domains, people }) =>
  codeOf(force(people.root.id, domains[n]!, people[to].email, rotateDkim))
const settling = (n: number): Action => ({ offered }) =>
  Effect.flatMap(Transfers, (transfers) => Effect.as(Effect.orDie(transfers.settle(offered[n]!)), "settled"))

/** Commands with two round trips: load, then write. */
const ofFresh: Readonly<Record<string, Action>> = {
  "alice offers to bob": offering("alice", 0, "bob"),
  "carol offers to eve": offering("carol", 0, "eve"),
  "bob offers to eve": offering("bob", 0, "eve"),
  "alice offers the other": offering("alice", 1, "bob"),
  "force to eve": forcing(0, "eve"),
  "force to eve with a new key": forcing(0, "eve", true),
  "force to bob": forcing(0, "bob"),
  "force the other to bob": forcing(1, "bob"),
}
const ofOffered: Readonly<Record<string, Action>> = {
  ...ofFresh,
  "bob accepts": accepting(0),
  "bob accepts by token": accepting(0, true),
  "bob accepts the other": accepting(1),
  "bob declines": byParty("decline", "bob", 0),
  "alice cancels": byParty("cancel", "alice", 0),
  "carol cancels": byParty("cancel", "carol", 0),
  stop: stopping,
  "the due transition": settling(0),
  "the due transition of the other": settling(1),
}

const byDirectory = (line: (stage: Stage) => Record<string, unknown>): Action => (stage) =>
  Effect.as(feed(line(stage)), "applied")

/** Changes that are one transaction each. */
const whole: Readonly<Record<string, Action>> = {
  "the domain is eve's": byDirectory(({ domains, people }) => domainLine(domains[0], people.eve)),
  "the domain is not verified": byDirectory(({ domains, people }) =>
    domainLine(domains[0], people.alice, { verified_at: null })
  ),
  "the domain is removed": byDirectory(({ domains: [id] }) => ({ kind: "domain", id, removed: true })),
  "bob is disabled": byDirectory(({ people }) => accountLine(people.bob.id, { ...limited, status: "disabled" })),
  "bob has no room": byDirectory(({ people }) => accountLine(people.bob.id, { domain_limit: 0 })),
  "bob has another address": byDirectory(({ people }) =>
    accountLine(people.bob.id, { ...limited, email: "bob@else.example" })
  ),
  "bob loses his seat": byDirectory(({ seats: { bob: id } }) => ({ kind: "workspace_membership", id, removed: true })),
  "bob's workspace is removed": byDirectory(({ people }) => ({
    kind: "workspace",
    id: people.bob.workspaceId,
    removed: true,
  })),
  "carol loses her seat": byDirectory(({ seats: { carol: id } }) => ({
    kind: "workspace_membership",
    id,
    removed: true,
  })),
  "alice has another credential": byDirectory(({ domains, people }) =>
    credentialLine(randomUUID(), domains[0], people.alice)
  ),
  "eve has a credential": byDirectory(({ domains, people }) => credentialLine(randomUUID(), domains[0], people.eve)),
  "eve's workspace is removed": byDirectory(({ people }) => ({
    kind: "workspace",
    id: people.eve.workspaceId,
    removed: true,
  })),
  "eve is disabled": byDirectory(({ people }) => accountLine(people.eve.id, { plan: "pro", status: "disabled" })),
  "alice is disabled": byDirectory(({ people }) => accountLine(people.alice.id, { plan: "pro", status: "disabled" })),
}
const ofLive: Readonly<Record<string, Action>> = {
  ...whole,
  "the due transitions, in a batch": ({ offered }) =>
    Effect.flatMap(Transfers, (transfers) => Effect.as(transfers.settleMany(offered), "settled")),
}

/** All rows that two commands leave, with names instead of ids. */
const remains = Effect.fnUntraced(function* ({ domains, offered, people, seats }: Stage) {
  const { sql } = yield* Database
  const d = sql`any(${[...domains]}::uuid[])`
  const accounts = names.map((name) => people[name].id)
  const [row] = yield* sql<{ text: string }>`
    select json_build_array(
      (select json_agg(json_build_array(domain_id, initiated_by, target_user_id, target_org_id, status, version, accept_used,
          stop_used, forced))
        from transfers where domain_id = ${d}),
      (select json_agg(json_build_array(id, account_id, workspace_id, removed, owner_held, revision))
        from domains where id = ${d}),
      (select json_agg(json_build_array(t.domain_id, m.kind, m.due_at))
        from timers m join transfers t on m.aggregate_id = t.id::text where t.domain_id = ${d}),
      (select json_agg(json_build_array(subject, action, actor, details->>'domain_id'))
        from audit_records where (details->>'domain_id')::uuid = ${d}),
      (select json_agg(json_build_array(aggregate_id, seq, subject))
        from outbox where stream = 'TRANSFERS' and aggregate_id::uuid = ${d}),
      (select json_agg(json_build_array(m.kind, m.recipient))
        from mails m join transfers t on t.id::text = m.subject_id where t.domain_id = ${d}),
      (select json_agg(json_build_array(domain_id, account_id, removed, locally_revoked_at))
        from smtp_credentials where domain_id = ${d}),
      (select json_agg(json_build_array(domain_id, transfer_id is not null)) from dkim_keys where domain_id = ${d}),
      (select json_agg(json_build_array(id, arrivals)) from accounts where id = any(${accounts}::uuid[])),
      (select json_agg(json_build_array(split_part(subject, '.', 3), o.account_id, o.revision))
        from outbox, json_to_record(payload::json) o(id text, domain_id text, account_id text, revision text)
        where stream = 'DIRECTORY' and coalesce(o.domain_id, o.id) = any(${[...domains]}::text[])),
      (select json_agg(json_build_array(account_id, title, version))
        from notifications where account_id = any(${accounts}::uuid[]))
    )::text as text`
  const known = [
    ...names.flatMap((name) => [[people[name].id, name], [people[name].workspaceId, `${name}'s`]] as const),
    ...[...domains, ...offered, ...Object.values(seats)].map((id, i) => [id, `#${i}`] as const),
  ]
  const named = known.reduce((text, [id, name]) => text.replaceAll(id, name), row!.text)
  // Ids are random, so rows are sorted by their text.
  const tables = JSON.parse(named) as ReadonlyArray<ReadonlyArray<unknown> | null>
  return JSON.stringify(tables.map((rows) => (rows ?? []).map((row) => JSON.stringify(row)).sort()))
})

/**
 * Runs a command up to its write, and on the next call to its end. Without a fenced write it runs to its end at once.
 */
const stepped = (effect: Step) =>
  Effect.map(Effect.all([Deferred.make<void>(), Deferred.make<void>()]), ([reached, go]) => {
    let fiber: Fiber.Fiber<string, unknown> | null = null
    const stop = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go))
    const run = effect.pipe(
      Effect.provideService(BeforeWrite, stop),
      Effect.onExit(() => Deferred.succeed(reached, undefined)),
    )
    return Effect.gen(function* () {
      if (fiber !== null) {
        yield* Deferred.succeed(go, undefined)
        return yield* Fiber.join(fiber)
      }
      const running = fiber = yield* Effect.forkChild(run)
      yield* Deferred.await(reached)
      // The command is now at its write, or has ended.
      yield* Effect.yieldNow
      return running.pollUnsafe() === undefined ? null : yield* Fiber.join(running)
    })
  })

type Order = ReadonlyArray<0 | 1>

/** The outcome of a schedule, and the order in which the two commands ended. */
const scene = Effect.fnUntraced(function* (setup: string, actions: readonly [Action, Action], schedule: Order) {
  const set = yield* setups[setup]!
  const both = yield* Effect.forEach(actions, (action) => stepped(action(set)))
  const answers = new Map<0 | 1, string>()
  for (const n of schedule) {
    const answer = yield* both[n]!
    if (answer !== null) answers.set(n, answer)
  }
  const ended: Order = [...answers.keys()]
  return { ended, outcome: `${answers.get(0)}, ${answers.get(1)}: ${yield* remains(set)}` }
}, timed)

const schedules = fc.constantFrom<Order>([0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [1, 0, 1, 0])

const pair = (setup: string, fenced: Readonly<Record<string, Action>>, all: Readonly<Record<string, Action>>) =>
  fc.record({
    setup: fc.constant(setup),
    first: fc.constantFrom(...Object.entries(fenced)),
    second: fc.constantFrom(...Object.entries({ ...fenced, ...all })),
    schedule: schedules,
  })

const cases = fc.oneof(
  pair("fresh", ofFresh, whole),
  { weight: 3, arbitrary: pair("offered", ofOffered, ofLive) },
  { weight: 2, arbitrary: pair("accepted", ofOffered, ofLive) },
  pair("due", ofOffered, ofLive),
)

/** The other command writes the due transition between this one's load and its own attempt to write it. */
const settledByTheOther = {
  setup: "due",
  first: ["bob offers to eve", ofFresh["bob offers to eve"]!] as [string, Action],
  second: ["alice offers to bob", ofFresh["alice offers to bob"]!] as [string, Action],
  schedule: [0, 1, 1, 0] as Order,
}

const parallel = 4
const runs = 200

layer(fixture(), { excludeTestServices: true, timeout: "5 minutes" })("interleavings", (it) => {
  it.effect("of any two commands give the result of a serial order", () =>
    Effect.gen(function* () {
      const run = Effect.runPromiseExitWith(yield* Effect.context<Services>())
      const result = async (...of: Parameters<typeof scene>) => {
        const exit = await run(scene(...of))
        if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
        return exit.value
      }
      const share = Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(cases, async ({ first, schedule, second, setup }) => {
            const actions = [first[1], second[1]] as const
            const { ended, outcome } = await result(setup, actions, schedule)
            const order = ended.flatMap((n) => [n, n])
            // A command that finds an overdue transition writes it first, as if a third command came before both.
            const serial = [(await result(setup, actions, order)).outcome]
            if (setup === "due") serial.push((await result("settled", actions, order)).outcome)
            assert.include(serial, outcome, `${first[0]} and ${second[0]}`)
          }),
          { numRuns: Math.ceil(runs / parallel), examples: [[settledByTheOther]] },
        )
      )
      yield* Effect.forEach(Array.from({ length: parallel }), () => share, { concurrency: parallel, discard: true })
    }))

  it.effect("a move also revokes a credential that was added between its load and its write", () =>
    Effect.gen(function* () {
      const credential = whole["alice has another credential"]!
      for (const [setup, name] of [["fresh", "force to eve"], ["due", "the due transition"]] as const) {
        const moves = [ofOffered[name]!, credential] as const
        const { outcome } = yield* scene(setup, moves, [0, 1, 0])
        assert.strictEqual(outcome, (yield* scene(setup, moves, [1, 0, 0])).outcome, name)
      }
    }))
})
