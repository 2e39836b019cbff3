/** Random lines of the kinds with a history: the final rows, and the events that products were sent about them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { ProjectId } from "../../../schemas/BrandedIds.ts"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Drift } from "../../../services/lifecycle/Drift.ts"
import { drifting } from "../../../services/lifecycle/Lag.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runs } from "../../support/Runs.ts"
import { identity } from "../../support/TestIdentity.ts"

const names = ["pat", "pet", "portal", "sponsor", "member", "owner", "first", "second", "link"] as const
type Name = (typeof names)[number]
type Ids = Record<Name | "fern", string>

const pick = <A>(n: number, ...values: ReadonlyArray<A>): A => values[n % values.length]!

/** The line of an id and version: its content is a function of both. */
const contents: Record<Name, (ids: Ids, n: number) => Record<string, unknown>> = {
  pat: (ids, n) => ({ ...person(ids.pat, n), status: pick(n, "disabled", "active", "suspended") }),
  pet: (ids, n) => ({ ...person(ids.pet, n), status: pick(n, "active", "disabled") }),
  portal: (ids, n) => ({
    kind: "project",
    institution_id: ids.fern,
    name: `v${n}`,
    website: `https://${ids.portal}.example`,
    environment: "staging",
    redirect_uris: [`https://v${n}.example/`],
    state: pick(n, "registered", "launched", "withdrawn", "held"),
  }),
  sponsor: (ids, n) => membership(ids.fern, ids.pat, "sponsor", n),
  member: (ids, n) => membership(ids.fern, ids.pet, "member", n),
  owner: (ids, n) => ({
    kind: "project_owner",
    project_id: ids.portal,
    person_id: pick(n >> 1, ids.pat, ids.pet),
    active: pick(n, true, false, true),
  }),
  first: (ids, n) =>
    grant(ids, pick(n, ids.pat, ids.pet), pick(n, "user", "user", "editor"), pick(n, "active", "revoked")),
  second: (ids, n) => grant(ids, ids.pet, pick(n, "user", "editor"), pick(n >> 1, "active", "revoked")),
  link: (ids, n) => ({ kind: "project_link", project_id: ids.portal, installed_version: `1.${n}` }),
}

const person = (id: string, n: number) => ({
  kind: "person",
  issuer: "https://id.example",
  subject: pick(n, id, `${id}-renamed`),
  display_name: `v${n}`,
  email: null,
  email_verified: n === 1,
  operator: n === 2,
})
const membership = (institution_id: string, person_id: string, role: string, n: number) => ({
  kind: "institution_membership",
  institution_id,
  person_id,
  role,
  state: pick(n, "invited", "active", "ended"),
  accepted_at: `2024-01-0${n}T00:00:00.000Z`,
})
const grant = (ids: Ids, person_id: string, role: string, state: string) => ({
  kind: "access",
  institution_id: ids.fern,
  project_id: ids.portal,
  person_id,
  role,
  state,
})

const tables = {
  person: "people",
  project: "projects",
  institution_membership: "institution_memberships",
  project_owner: "project_owners",
  access: "access",
  project_link: "project_links",
} as const

interface Told {
  readonly kind: LifecycleEventKind
  readonly person_id: string | null
  readonly payload: {
    readonly access?: { readonly access_id: string; readonly version: number; readonly role: string }
    readonly owner?: { readonly person_id: string; readonly active: boolean }
  }
}

/** The state as a product derives it from its events alone. */
const pictureOf = (facts: ReadonlyArray<Told>) => {
  const access = new Map<string, string>()
  const people = new Map<string, string>()
  const owners = new Set<string>()
  let project = "none"
  for (const { kind, payload, person_id } of facts) {
    if (kind === "access-granted") access.set(payload.access!.access_id, payload.access!.role)
    if (kind === "token-claims-change") access.set(payload.access!.access_id, payload.access!.role)
    if (kind === "access-revoked") access.delete(payload.access!.access_id)
    if (kind.startsWith("account-")) people.set(person_id!, kind)
    if (kind.startsWith("project-") && kind !== "project-owner-changed") project = kind
    if (payload.owner !== undefined) owners[payload.owner.active ? "add" : "delete"](payload.owner.person_id)
  }
  return { access, people, owners, project }
}

interface Row {
  readonly id: string
  readonly removed: boolean
  readonly version: number
  readonly [column: string]: unknown
}

const standing = ({ removed, status }: Row) =>
  removed ? "account-purged" : status === "active" ? "account-enabled" : "account-disabled"

const some = fc.record({
  name: fc.constantFrom(...names),
  version: fc.integer({ min: 1, max: 6 }),
  removed: fc.nat({ max: 5 }).map((n) => n === 0),
})

layer(Drift.layer.pipe(Layer.provideMerge(identity)))("Directory of identities", (it) => {
  it.effect("lines in any order and repetition end in the highest versions, and in matching events", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql, wide } = yield* Database
      const { look } = yield* Drift
      const context = yield* Effect.context<Directory | Database>()
      const lines = fc.array(some, { minLength: 1, maxLength: 40 })
      const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 })

      const run = Effect.fnUntraced(function* (
        told: ReadonlyArray<{ name: Name; version: number; removed: boolean }>,
        sizes: ReadonlyArray<number>,
      ) {
        const ids = Object.fromEntries([...names, "fern"].map((name) => [name, randomUUID()])) as Ids
        const dead = new Map(told.map(({ name, removed, version }) => [`${name} ${version}`, removed]))
        const lineOf = (name: Name, version: number) => {
          const content = contents[name](ids, version)
          const removed = dead.get(`${name} ${version}`)!
          return removed ? { kind: content["kind"], removed } : content
        }
        const texts = told.map(({ name, version }) =>
          JSON.stringify({ ...lineOf(name, version), id: ids[name], version })
        )
        // Applied in batches of any size, and the last lines once more.
        for (let i = 0, at = 0; at < texts.length; at += sizes[i++ % sizes.length]!) {
          yield* directory.apply(texts.slice(at, at + sizes[i % sizes.length]!))
        }
        const again = yield* directory.apply(texts.slice(-5))
        assert.isFalse(again.some(({ _tag }) => _tag !== "ignored"), JSON.stringify(again))

        const rows = new Map<Name, Row>()
        for (const name of names) {
          const table = tables[contents[name](ids, 1)["kind"] as keyof typeof tables]
          const [found] = yield* sql<{ row: Row }>`select to_jsonb(t) as row from ${sql(table)} t where id = ${
            ids[name]
          }`
          const version = Math.max(0, ...told.filter((line) => line.name === name).map((line) => line.version))
          assert.strictEqual(found?.row.version ?? 0, version)
          if (found === undefined) continue
          rows.set(name, found.row)
          const { kind: _, ...line } = lineOf(name, version)
          for (const [column, value] of Object.entries(line)) {
            const held = found.row[column]
            const same = column === "accepted_at" ? new Date(String(held)).toISOString() : held
            assert.deepStrictEqual(same, value, `${name}.${column}`)
          }
        }

        const known = (id: unknown) => [...rows.values()].find((row) => row.id === id && row["issuer"] != null)
        const identities = yield* sql<{ person_id: string; subject: string }>`
          select person_id, subject from identities where person_id = any(${[ids.pat, ids.pet]}::text[])`
        assert.deepStrictEqual(
          new Set(identities.map(({ person_id, subject }) => `${person_id} ${subject}`)),
          new Set(
            [rows.get("pat"), rows.get("pet")].flatMap((row) =>
              row === undefined || row.removed ? [] : [`${row.id} ${row["subject"]}`]
            ),
          ),
        )

        const facts = yield* sql<Told>`
          select kind, person_id, payload from lifecycle_events where project_id = ${ids.portal} order by position`
        const picture = pictureOf(facts)
        for (const name of ["first", "second"] as const) {
          const row = rows.get(name)
          const versions = yield* sql<{ access_version: number; role: string; state: string; person_id: string }>`
            select access_version, role, state, person_id from access_versions
            where access_id = ${ids[name]} order by access_version`
          assert.deepStrictEqual(versions.map((v) => v.access_version), versions.map((_, i) => i + 1))
          assert.strictEqual(row?.["access_version"] ?? 0, versions.length)
          const holder = known(row?.["person_id"])
          const active = row !== undefined && !row.removed && row["state"] === "active" && holder !== undefined
          assert.strictEqual(picture.access.get(ids[name]), active ? String(row["role"]) : undefined)
          if (!active) continue
          assert.strictEqual(picture.people.get(holder.id) ?? "account-enabled", standing(holder))
          assert.strictEqual(versions.at(-1)!.person_id, holder.id)
        }
        const portal = rows.get("portal")
        const owner = rows.get("owner")
        const owns = owner !== undefined && !owner.removed && owner["active"] === true &&
          known(owner["person_id"]) !== undefined && portal?.["institution_id"] != null
        assert.deepStrictEqual([...picture.owners], owns ? [String(owner["person_id"])] : [])
        if (portal?.["state"] === "withdrawn" || portal?.removed === true) {
          assert.include(["none", "project-withdrawn"], picture.project)
        } else if (portal !== undefined) {
          assert.strictEqual(picture.project, portal["state"] === "launched" ? "project-launched" : picture.project)
          assert.notInclude(["none", "project-withdrawn"], picture.project)
        }
        const link = rows.get("link")
        const runs = link === undefined || link.removed ? null : link["installed_version"]
        if (portal !== undefined) assert.strictEqual(portal["installed_version"], runs)

        // The drift check, which compares event state and tables, finds nothing either.
        while (yield* look);
        assert.deepStrictEqual(yield* drifting(wide, ProjectId.make(ids.portal)), [])
      })

      const property = fc.asyncProperty(lines, sizes, (told, sizes) => Effect.runPromiseWith(context)(run(told, sizes)))
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(60) }))
    }))
})
