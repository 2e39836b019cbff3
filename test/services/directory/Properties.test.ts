/** Properties of the directory for any lines in any order. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { Directory } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { account, credential, domain, fresh, removal } from "../../support/DirectoryLines.ts"
import { runs } from "../../support/Runs.ts"
import { ground } from "../../support/TestAccounts.ts"

layer(ground)("Directory", (it) => {
  it.effect("versioned lines in any order and repetition end in the state of the highest versions", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const line = fc.record({
        entity: fc.nat({ max: 3 }),
        version: fc.integer({ min: 1, max: 6 }),
        removed: fc.boolean(),
      })
      const context = yield* Effect.context<Directory | Database>()
      const property = fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 30 }), fc.integer(), (lines, cut) => {
        const own = [0, 1, 2, 3].map(fresh)
        // The line of an id and version: its content is a function of both.
        const dead = new Map(lines.map(({ entity, version, removed }) => [`${entity}.${version}`, removed]))
        const texts = lines.map(({ entity, version }) =>
          dead.get(`${entity}.${version}`)
            ? removal("account", own[entity]!, version)
            : account(own[entity]!, version, { name: `v${version}` })
        )
        const at = Math.abs(cut) % texts.length
        return Effect.runPromiseWith(context)(Effect.gen(function* () {
          yield* directory.apply(texts.slice(0, at))
          yield* directory.apply([...texts.slice(at), ...texts.slice(0, at)])
          const rows = yield* sql<{ id: string; version: bigint; removed: boolean; name: string | null }>`
            select id::text, version, removed, case when not removed then name end as name
            from accounts where ${sql.in("id", own)} order by id`
          const expected = own.flatMap((id, entity) => {
            const version = Math.max(0, ...lines.filter((l) => l.entity === entity).map((l) => l.version))
            if (version === 0) return []
            const removed = dead.get(`${entity}.${version}`)!
            return [{ id, version: BigInt(version), removed, name: removed ? null : `v${version}` }]
          })
          assert.deepStrictEqual([...rows], expected)
        }))
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(60) }))
    }))

  it.effect("lines of a transferred domain do the same in one batch as one by one", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const context = yield* Effect.context<Directory | Database>()
      const line = fc.record({ version: fc.integer({ min: 2, max: 9 }), owner: fc.constantFrom(null, 0, 1, 2) })
      const property = fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
        const owners = [fresh(), fresh(), fresh()] as const
        const text = (id: string, { owner, version }: (typeof lines)[number]) =>
          owner === null ? removal("domain", id, version) : domain(id, version, owners[owner]!)
        const [together, apart] = [fresh(), fresh()]
        return Effect.runPromiseWith(context)(Effect.gen(function* () {
          yield* directory.apply([together, apart].map((id) => domain(id, 1, owners[0])))
          yield* sql`update domains set account_id = ${owners[1]}::uuid, owner_held = true
            where ${sql.in("id", [together, apart])}`
          yield* directory.apply(lines.map((line) => text(together, line)))
          for (const line of lines) yield* directory.apply([text(apart, line)])
          const [one, other] = yield* sql`
            select version, removed, account_id::text, owner_held, revision from domains
            where ${sql.in("id", [together, apart])}`
          assert.deepStrictEqual(one, other)
        }))
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(40) }))
    }))

  it.effect("domains and credentials in any order revoke exactly the other accounts' credentials", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const context = yield* Effect.context<Directory | Database>()
      const wanted = fc.record({
        credentials: fc.array(fc.record({ domain: fc.nat({ max: 1 }), account: fc.nat({ max: 1 }) }), { maxLength: 6 }),
        order: fc.array(fc.nat(), { minLength: 8, maxLength: 8 }),
        sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 8, maxLength: 8 }),
      })
      const property = fc.asyncProperty(wanted, ({ credentials, order, sizes }) => {
        const domains = [fresh(), fresh()] as const
        const owners = [fresh(), fresh()] as const
        const made = credentials.map((credential) => ({ ...credential, id: fresh() }))
        const lines = [
          ...domains.map((id, i) => domain(id, 1, owners[i]!)),
          ...made.map(({ id, domain, account }) => credential(id, 1, domains[domain]!, owners[account]!)),
        ].map((text, i) => ({ text, at: order[i]! })).sort((a, b) => a.at - b.at)
        return Effect.runPromiseWith(context)(Effect.gen(function* () {
          for (const size of sizes) yield* directory.apply(lines.splice(0, size).map(({ text }) => text))
          const revoked = yield* sql<{ id: string }>`
            select id::text from smtp_credentials
            where domain_id = any(${[...domains]}::uuid[]) and locally_revoked_at is not null order by id`
          assert.deepStrictEqual(
            revoked.map(({ id }) => id),
            made.flatMap(({ id, domain, account }) => domain === account ? [] : [id]),
          )
        }))
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(40) }))
    }))
})
