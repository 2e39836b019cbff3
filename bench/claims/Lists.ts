/**
 * The lists of both APIs as the rows of others grow a hundredfold: blocks a request, by PostgreSQL's own count of each
 * table and its indexes. A list that reads more than half as much again fails the run.
 */
import { Effect, Schedule } from "effect"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { hashOf } from "../../services/authentication/Principals.ts"
import { Database } from "../../services/platform/database/Database.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { rounded } from "../harness/Figures.ts"
import { fill as fillMail, hooksOn } from "../harness/Fixture.ts"
import { fill as fillIdentity, listed, lister, operator } from "../harness/IdentityFixture.ts"
import { others } from "../harness/OthersFixture.ts"
import { peopleTokens } from "../harness/PeopleTokens.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"
import { signer } from "../programs/load/SignTokens.ts"
import { deliveries } from "./Reads.ts"

const template = "lists"
const requests = 20
/** A tree of a hundred times the rows is a level higher: one block more for each row that is looked up. */
const most = 1.5

const failed = (cause: unknown) =>
  cause instanceof Child.BenchError ? cause : new Child.BenchError({ message: `lists: ${String(cause)}` })

type Blocks = ReadonlyMap<string, number>

/** A connection reports its counts when it ends; the program opens another. */
const counted = ({ sql }: Fixture): Effect.Effect<Blocks, unknown> =>
  Effect.gen(function* () {
    const connected = sql<{ n: number }>`
      select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
      where datname = current_database() and application_name = 'bailiwick'`
    yield* connected.pipe(
      Effect.repeat({ schedule: Schedule.spaced("50 millis"), until: ([row]) => row!.n === 0 }),
      Effect.timeout("20 seconds"),
    )
    const rows = yield* sql<{ name: string; blocks: number }>`
      select coalesce(parent.relname, c.relname) as name, sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0)
        + coalesce(idx_blks_read, 0))::float8 as blocks
      from pg_statio_user_tables s join pg_class c on c.oid = s.relid
      left join pg_inherits i on i.inhrelid = c.oid left join pg_class parent on parent.oid = i.inhparent
      group by 1`
    return new Map(rows.map(({ blocks, name }) => [name, blocks]))
  })

const ask = (url: string, token: string) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      const body = await response.text()
      if (response.status !== 200) throw new Error(`${url}: ${response.status} ${body.slice(0, 300)}`)
    },
    catch: failed,
  })

interface List {
  readonly path: string
  readonly token: string
}

/** Blocks that a request reads, by table, where it reads any. */
const reading = Effect.fnUntraced(function* (fixture: Fixture, origin: string, { path, token }: List) {
  const before = yield* counted(fixture)
  // Requests that meet a connection that has just ended are repeated.
  for (let n = 0; n < requests; n++) yield* Effect.retry(ask(`${origin}${path}`, token), { times: 10 })
  const after = yield* counted(fixture)
  const each = [...after].map(([name, blocks]) => [name, (blocks - (before.get(name) ?? 0)) / requests] as const)
  return new Map(each.filter(([, blocks]) => blocks >= 0.5))
})

const total = (blocks: Blocks) => [...blocks.values()].reduce((sum, n) => sum + n, 0)

const measured = Effect.fnUntraced(function* (run: Run) {
  const [few, many] = run.quick ? [1_000, 100_000] : [10_000, 1_000_000]
  const tokens = yield* peopleTokens
  const hooks = hooksOn([9])
  const [hook] = hooks
  const { key, prefix } = yield* newKey
  yield* run.tell("writing what is the caller's own")
  yield* run.servers.template(
    template,
    Effect.gen(function* () {
      yield* fillMail(hooks, Product.keysFileOf(run.servers))
      yield* deliveries(hook!, 100)
      const { owner } = yield* Database
      yield* owner`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
        values (gen_random_uuid(), ${hook!.accountId}::uuid, 'Bench', ${hashOf(key)}, ${prefix}, array['send'], true,
          ${new Date()})`
      yield* fillIdentity(400)
    }),
  )
  const fixture = yield* run.servers.fixture(template)
  const sign = yield* Effect.promise(() => signer(tokens.keys.RS256))
  const [administrator, operating] = yield* Effect.promise(() => Promise.all([sign(lister(0)), sign(operator(0))]))
  const lists: ReadonlyArray<List> = [
    ...[`/v1/webhooks/${hook!.id}/deliveries`, "/v1/api-keys/", "/v1/webhooks/", "/v1/notifications"],
    ...["/v1/domain-transfers/incoming", "/v1/domain-transfers/outgoing"],
  ].map((path) => ({ path, token: key })).concat(
    ["/v1/me", "/v1/me/requests", "/v1/me/sessions", `/v1/institutions/${listed}/projects`, "/v1/policies/reviews"]
      .concat(
        `/v1/institutions/${listed}/access-grant-reviews`,
      ).map((path) => ({ path, token: administrator })),
    ["/v1/policies/reviews", "/v1/operations", "/v1/jobs"].map((path) => ({ path, token: operating })),
  )
  const program = yield* Product.start(run.servers, fixture, {
    ROLES: "api",
    MANAGEMENT_ISSUERS: tokens.issuers,
    MANAGEMENT_READ_RATE: "10000000",
  })
  const origin = new URL(yield* Product.ready(program)).origin
  const found: Array<ReadonlyArray<Blocks>> = []
  for (const [from, to] of [[0, few], [few, many]] as const) {
    yield* run.tell(`writing others up to ${to} rows a table`)
    yield* others(fixture, from, to)
    const sizes: Array<Blocks> = []
    for (const list of lists) {
      yield* run.tell(`${list.path} at ${to} rows`)
      sizes.push(yield* reading(fixture, origin, list))
    }
    found.push(sizes)
  }
  const rows = lists.map(({ path, token }, n) => {
    const [small, large] = [found[0]![n]!, found[1]![n]!]
    const [worst] = [...large].sort(([a, x], [b, y]) => y - (small.get(b) ?? 0) - (x - (small.get(a) ?? 0)))
    return {
      name: path.replaceAll(hook!.id, "{id}") + (token === operating ? ", an operator" : ""),
      small: total(small),
      large: total(large),
      growth: total(large) / Math.max(1, total(small)),
      most: worst === undefined ? "" : `${worst[0]} ${Math.round(small.get(worst[0]) ?? 0)} → ${Math.round(worst[1])}`,
    }
  })
  return { few, many, rows }
})

export const lists: Claim = {
  name: "lists",
  title: "Blocks that a list reads as the rows of others grow",
  measure: (run) =>
    Effect.gen(function* () {
      const { few, many, rows } = yield* measured(run)
      const grown = rows.filter(({ growth }) => growth > most)
      if (grown.length > 0) {
        const said = grown.map(({ growth, most, name }) => `${name}: ${rounded(growth, 2)} times (${most})`).join("\n")
        return yield* failed(`more than ${most} times as much is read of ${many} rows as of ${few}:\n${said}`)
      }
      return {
        tables: [{
          title: `Blocks a request, ${few} and ${many} rows a table`,
          columns: ["", `${few}`, `${many}`, "growth", "grows most"],
          rows: rows.map(({ growth, large, most, name, small }) => [
            ...[name, rounded(small, 1), rounded(large, 1), rounded(growth, 2), most],
          ]),
        }],
        notes: [
          `${requests} requests a list, one after the other, over HTTP; blocks of tables and their indexes, from the cache or not.`,
          "The caller's own rows stay as they are: 100 deliveries, an institution of a thousand reviews, a project list.",
        ],
        raw: rows,
      }
    }).pipe(Effect.mapError(failed)),
}
