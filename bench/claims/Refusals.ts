/**
 * The cost of refusals: the main thread's time and the answer's bytes for bodies of nearly 256 KiB that are wrong in
 * every known way; and the latency of an account's reads beside two clients with one key that send nothing else.
 */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { hashOf } from "../../services/authentication/Principals.ts"
import { Database } from "../../services/platform/database/Database.ts"
import type { Insisted, Insistence } from "../programs/load/RepeatedBody.ts"
import { signer } from "../programs/load/SignTokens.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { mainThreadMillis } from "../harness/Cpu.ts"
import { fill, hooksOn } from "../harness/Fixture.ts"
import { issuer } from "../harness/IdentityFixture.ts"
import { type PeopleTokens, peopleTokens } from "../harness/PeopleTokens.ts"
import * as Product from "../harness/Product.ts"
import { type Sender, size, wrongBodies, type WrongBody } from "../harness/WrongBodies.ts"
import { deliveries } from "./Reads.ts"

const template = "refusals"
const honestConnections = 32
const hostileConnections = 2
const person = "person-1"

const keyOf = (accountId: string) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    const { key, prefix } = yield* newKey
    yield* owner`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
      values (${randomUUID()}::uuid, ${accountId}::uuid, 'Key', ${hashOf(key)}, ${prefix}, array['send'], true,
        ${new Date()})`
    return key
  })

const freeAccount = Effect.gen(function* () {
  const { owner } = yield* Database
  const id = randomUUID()
  yield* owner`insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
    values (${id}::uuid, 1, false, ${new Date()}, ${`${id}@example.com`}, 'Free', 'free', false, 'active')`
  return id
})

const activePerson = Effect.gen(function* () {
  const { owner } = yield* Database
  const at = new Date()
  yield* owner`insert into people (id, updated_at, created_at, issuer, subject, display_name, email, email_verified,
      operator, status)
    values (${person}, ${at}, ${at}, ${issuer}, ${person}, 'A person', 'person@example.com', true, false, 'active')`
  yield* owner`insert into identities (issuer, subject, person_id, linked_at)
    values (${issuer}, ${person}, ${person}, ${at})`
})

interface Fixture {
  readonly port: number
  readonly pid: number
  readonly headers: (sender: Sender) => Readonly<Record<string, string>>
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const headersOf = (tokens: PeopleTokens, key: string) =>
  Effect.promise(async () => {
    const sign = await signer(tokens.keys.RS256)
    const all: Readonly<Record<Sender, Readonly<Record<string, string>>>> = {
      account: bearer(key),
      person: { ...bearer(await sign(person)), "idempotency-key": "bench" },
      service: bearer(await sign("service-1", { audience: "service-lifecycle", clientId: "service-1" })),
      anonymous: {},
    }
    return (sender: Sender) => all[sender]
  })

const driving = Effect.gen(function* () {
  const child = yield* Child.start({ module: "bench/programs/load/RepeatedBody.ts" })
  return Effect.fnUntraced(function* (order: Insistence) {
    yield* child.tell(JSON.stringify(order))
    const insisted = yield* child.event<Insisted>("insisted")
    return insisted.fault === null
      ? insisted
      : yield* new Child.BenchError({ message: `${order.path}: ${insisted.fault}` })
  })
})

interface Cost {
  readonly millis: number
  readonly bytes: number
  readonly status: string
}

/** The main thread's time for each of some requests with this body. */
const costOf = (
  { headers, pid, port }: Fixture,
  insist: (order: Insistence) => Effect.Effect<Insisted, Child.BenchError>,
) =>
  Effect.fnUntraced(function* ({ body, method, path, sender }: WrongBody, count: number) {
    const order = { port, method, path, headers: headers(sender), body, connections: 1 }
    yield* insist({ ...order, count: 3 })
    const before = mainThreadMillis(pid) ?? NaN
    const { answered, bytes, statuses } = yield* insist({ ...order, count })
    const millis = ((mainThreadMillis(pid) ?? NaN) - before) / answered
    return { millis, bytes, status: Object.keys(statuses).join(", ") } satisfies Cost
  })

interface Driven {
  readonly p50: number
  readonly p99: number
  readonly fault: string | null
}

const hostile = ["events: numbers", "required members are missing beside many", "no JSON at the end"] as const

export const refusals: Claim = {
  name: "refusals",
  title: "What a refusal costs, and whom",
  measure: (run: Run) =>
    Effect.gen(function* () {
      const { servers } = run
      const tokens = yield* peopleTokens
      const hooks = hooksOn([9])
      const [hook] = hooks
      let keys = { honest: "", free: "" }
      yield* servers.template(
        template,
        Effect.gen(function* () {
          yield* fill(hooks, Product.keysFileOf(servers))
          yield* deliveries(hook!, 20_000)
          yield* activePerson
          keys = { honest: yield* keyOf(hook!.accountId), free: yield* keyOf(yield* freeAccount) }
        }),
      )
      const headers = yield* headersOf(tokens, keys.free)
      const started = Effect.fnUntraced(function* (rates: Readonly<Record<string, string>>) {
        const database = yield* servers.fixture(template)
        const program = yield* Product.start(servers, database, {
          ROLES: "api,actors,timers",
          MANAGEMENT_ISSUERS: tokens.issuers,
          LIFECYCLE_ISSUERS: tokens.issuers,
          ...rates,
        }, run.profile)
        return {
          port: Number(new URL(yield* Product.ready(program)).port),
          pid: program.pid,
          headers,
        } satisfies Fixture
      })
      const insist = yield* driving
      const none = { MANAGEMENT_WRITE_RATE: "0", MAIL_WRITE_RATE: "0" }
      // An empty variable counts as not set.
      const asTheyAre = { MAIL_WRITE_RATE: "" }

      const costs = yield* Effect.scoped(Effect.gen(function* () {
        const cost = costOf(yield* started(none), insist)
        return yield* Effect.forEach(wrongBodies, (body) =>
          Effect.gen(function* () {
            yield* run.tell(`${body.sender}: ${body.title}`)
            return { ...body, ...(yield* cost(body, run.quick ? 10 : 40)) }
          }))
      }))

      const beside = Effect.fnUntraced(function* (fixture: Fixture, title: string | null) {
        const load = yield* Child.start({ module: "bench/programs/load/KeepAliveLoad.ts" })
        const seconds = run.quick ? 2 : 4
        const path = `/v1/webhooks/${hook!.id}/deliveries`
        const honest = Effect.gen(function* () {
          yield* load.tell(JSON.stringify({
            port: fixture.port,
            path,
            keys: [keys.honest],
            connections: honestConnections,
            warmSeconds: 1,
            seconds,
          }))
          const driven = yield* load.event<Driven>("driven")
          return driven.fault === null ? driven : yield* new Child.BenchError({ message: driven.fault })
        })
        const wrong = wrongBodies.find((body) => body.title === title)
        if (wrong === undefined) return { ...(yield* honest), statuses: {} }
        const { body, method, path: to, sender } = wrong
        const order = {
          port: fixture.port,
          method,
          path: to,
          headers: headers(sender),
          body,
          connections: hostileConnections,
        }
        const [driven, { statuses }] = yield* Effect.all([honest, insist({ ...order, seconds: seconds + 1.5 })], {
          concurrency: 2,
        })
        return { ...driven, statuses }
      }, Effect.scoped)

      const rounds: Array<Readonly<Record<string, Driven & { readonly alone: number; readonly statuses: string }>>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Driven & { readonly alone: number; readonly statuses: string }> = {}
        for (const [limits, rates] of [["without limits", none], ["with the limits as they are", asTheyAre]] as const) {
          for (const title of hostile) {
            yield* run.tell(`round ${round} of ${run.rounds}: ${title}, ${limits}`)
            yield* Effect.scoped(Effect.gen(function* () {
              const fixture = yield* started(rates)
              const { p50: alone } = yield* beside(fixture, null)
              const { statuses, ...driven } = yield* beside(fixture, title)
              const said = Object.entries(statuses).map(([status, n]) => `${n} × ${status}`).join(", ")
              figures[`${title}, ${limits}`] = { ...driven, alone, statuses: said }
            }))
          }
        }
        rounds.push(figures)
      }
      const titles = Object.keys(rounds[0]!)
      const of = (title: string, pick: (one: Driven & { readonly alone: number }) => number) =>
        median(rounds.map((round) => pick(round[title]!)))
      return {
        tables: [
          {
            title: `One body of ${size / 1_000} KB, refused`,
            columns: ["", "by", "status", "ms of the main thread", "bytes answered"],
            rows: costs.map(({ bytes, millis, sender, status, title }) => [
              ...[title, sender, status, rounded(millis, 1), bytes],
            ]),
          },
          {
            title: "An account's reads beside two clients of another that send such bodies",
            columns: ["", "p50 alone, ms", "p50 beside them", "times", "p99 beside them", "answers to them"],
            rows: titles.map((title) => [
              title,
              rounded(of(title, ({ alone }) => alone), 2),
              rounded(of(title, ({ p50 }) => p50), 2),
              rounded(of(title, ({ alone, p50 }) => p50 / alone), 2),
              rounded(of(title, ({ p99 }) => p99), 1),
              rounds.at(-1)![title]!.statuses,
            ]),
          },
        ],
        notes: [
          "The main thread's time is the kernel's, in ticks of 10 ms over all requests of a row, sent one after the other.",
          `The reads: ${honestConnections} keep-alive connections, 20 deliveries a page; the program is started anew for each row.`,
        ],
        raw: { costs: costs.map(({ body: _, ...cost }) => cost), rounds },
      }
    }),
}
