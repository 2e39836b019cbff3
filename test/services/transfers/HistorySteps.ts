/** The steps of random histories. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { admin, type Asked, domains, persons, type Real, type Services, Step } from "./HistoryStep.ts"
import type { Model, Plan, Role, Transfer } from "./Model.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  accountLine,
  codeOf,
  command,
  domainLine,
  feed,
  force,
  offer,
  type Person,
  seatLine,
} from "./TransferFixture.ts"

export const line = (
  { id }: Person,
  { active, limit, plan }: Pick<Model["people"][number], "active" | "limit" | "plan">,
) => accountLine(id, { plan, domain_limit: limit, status: active ? "active" : "disabled" })

/** Picks a transfer: live ones first, then the others, newest first. */
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
    real: (fixture, state) => {
      const t = at(state, pick)
      return t === undefined ? Effect.succeed("nothing") : real(t, fixture)
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

/** A directory line about an account, built from the model's state at that step. */
const account = (name: string, n: number, change: (person: Model["people"][number]) => void) =>
  new Step({
    name,
    model: (model) => {
      change(model.people[n]!)
      return "done"
    },
    real: ({ people }, model) => {
      const next = { ...model.people[n]! }
      change(next)
      return Effect.as(feed(line(people[n]!, next)), "done")
    },
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

export const steps: ReadonlyArray<fc.Arbitrary<Step>> = [
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
  // With the right account, so that many histories reach later states.
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
  fc.boolean().map((together) =>
    changed(
      together ? "timers fire in a batch" : "timers fire one by one",
      (model) => model.transfers.forEach((t) => model.settle(t)),
      (_, model) =>
        Effect.gen(function* () {
          const { settle, settleMany } = yield* Transfers
          const ids = model.transfers.map(({ id }) => id)
          if (together) yield* settleMany(ids)
          else yield* Effect.forEach(ids, settle, { discard: true })
          return "done"
        }),
    )
  ),
  fc.tuple(who, fc.constantFrom(-1, 0, 1, 2, 3)).map(([n, limit]) =>
    account(`limit of ${n} is ${limit}`, n, (person) => void (person.limit = limit))
  ),
  fc.tuple(who, fc.constantFrom<Plan>("free", "free", "starter", "business")).map(([n, plan]) =>
    account(`${n} is ${plan}, and no limit of their own`, n, (person) => Object.assign(person, { plan, limit: null }))
  ),
  fc.tuple(fc.nat(persons - 2), fc.boolean()).map(([n, active]) =>
    account(`${n} is ${active ? "active" : "disabled"}`, n, (person) => void (person.active = active))
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
      `the directory gives ${d} to ${owner}, ${verified ? "verified" : "unverified"}`,
      (model) => model.feed(d, owner, verified),
      ({ domains, people }) =>
        Effect.as(feed(domainLine(domains[d]!, people[owner]!, verified ? {} : { verified_at: null })), "done"),
    )
  ),
]
