/** Conditions that an approved launch waits for, and what is checked again once they hold. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { InstitutionId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { missingOf } from "../../../services/projects/Projects/LaunchConditions.ts"
import { Rollouts } from "../../../services/projects/Rollouts.ts"
import { timed } from "../../support/Fixtures.ts"
import { institution, owner, project, tell } from "../../support/TestIdentity.ts"
import {
  fire,
  fixture,
  projectRow,
  propose,
  requestRow,
  services,
  sign,
  website,
  workJobs,
} from "../decisions/RequestFixture.ts"

type Project = Parameters<typeof missingOf>[0]
type Path = Parameters<typeof missingOf>[2]

const connector = {
  connector_kind: "service_connector",
  connector_product: "shop",
  preview_digest: "sha256:1",
} as const
const complete = {
  rollout: null,
  environment: "production",
  connector_kind: "standard_oidc",
  connector_product: null,
  preview_digest: null,
  redirect_uris: ["https://portal.fern.example/cb"],
} as const
const at = "https://portal.fern.example/"
const done: Path = {
  reviewed: true,
  approved: true,
  client: "live",
  institutionActive: true,
  domains: ["fern.example"],
}

const cases: ReadonlyArray<readonly [string | null, object, Partial<Path>]> = [
  [null, {}, {}],
  ["rollout_held", { rollout: "hold", redirect_uris: [] }, { reviewed: false }],
  ["changed_since_approval", { redirect_uris: [] }, { approved: false, institutionActive: false }],
  ["registration_unreviewed", { redirect_uris: [] }, { reviewed: false, client: "none" }],
  ["redirect_uri_missing", { redirect_uris: [] }, { client: "none" }],
  [null, { ...connector, redirect_uris: [] }, {}],
  ["connector_incomplete", { ...connector, connector_product: null }, {}],
  ["connector_incomplete", { ...connector, connector_product: "" }, {}],
  ["connector_incomplete", { ...connector, preview_digest: null }, { client: "none" }],
  ["client_not_provisioned", {}, { client: "none" }],
  ["client_disabled", {}, { client: "disabled" }],
  ["institution_not_active", {}, { institutionActive: false, domains: [] }],
  ["launch_url_unverified", {}, { domains: ["other.example"], client: "none" }],
]

describe("a launch waits for", () => {
  for (const [missing, more, path] of cases) {
    it(`${missing ?? "nothing"}: ${JSON.stringify({ ...more, ...path })}`, () => {
      assert.strictEqual(missingOf({ ...complete, ...more } as unknown as Project, at, { ...done, ...path }), missing)
    })
  }

  it("a verified domain, except in staging", () => {
    const to = (environment: "staging" | "production") =>
      missingOf({ ...complete, environment } as unknown as Project, "http://localhost:8080/", { ...done, domains: [] })
    assert.deepStrictEqual([to("staging"), to("production")], [null, "launch_url_unverified"])
  })
})

layer(Rollouts.layer.pipe(Layer.provideMerge(services)), { excludeTestServices: true, timeout: "2 minutes" })(
  "Held launches",
  (it) => {
    it.effect("a project of the directory gets its client when it is launched", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const id = yield* project(w.fern, { state: "registered" })
        yield* owner(id, w.pat)
        yield* sign(yield* propose(id, w.pat), "administrator", w.ada)
        assert.deepInclude(yield* projectRow(id), { state: "held", held_reason: "client_not_provisioned" })
        yield* workJobs
        yield* TestClock.adjust(60_000)
        yield* fire
        const { revision, state } = yield* projectRow(id)
        assert.strictEqual(state, "launched")
        const { sql } = yield* Database
        assert.deepStrictEqual(
          yield* sql`select actor, details from audit_records
            where subject = ${`project:${id}`} and action = 'project.launched'`,
          [{ actor: "system", details: { institution: w.fern, version: revision } }],
        )
      })))

    it.effect("a connector is launched once the directory has completed it", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const fields = { connector_kind: "service_connector", connector_product: "shop", state: "registered" } as const
        const id = yield* project(w.fern, fields)
        yield* owner(id, w.pat)
        const launch = yield* propose(id, w.pat)
        yield* sign(launch, "administrator", w.ada)
        assert.deepInclude(yield* requestRow(launch.launch_id), { state: "held", held_reason: "connector_incomplete" })
        const { sql } = yield* Database
        const [row] = yield* sql<{ website: string; version: string; environment: string }>`
          select website, version::text as version, environment from projects where id = ${id}`
        yield* workJobs
        yield* tell("project", {
          ...fields,
          ...row,
          id,
          version: Number(row!.version) + 1,
          institution_id: w.fern,
          name: "Shop",
          preview_digest: "sha256:1",
        })
        yield* TestClock.adjust(60_000)
        yield* fire
        assert.strictEqual((yield* projectRow(id)).state, "launched")
      })))

    it.effect("a project is not launched with another preview, or in another institution, than approved", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const { sql } = yield* Database
        const fields = { connector_kind: "service_connector", connector_product: "shop", state: "registered" } as const
        const id = yield* project(w.fern, { ...fields, preview_digest: "sha256:1" })
        yield* owner(id, w.pat)
        const launch = yield* propose(id, w.pat)
        yield* sign(launch, "administrator", w.ada)
        yield* workJobs
        const becomes = Effect.fnUntraced(function* (preview: string, institutionId: InstitutionId) {
          yield* sql`update projects set preview_digest = ${preview}, institution_id = ${institutionId} where id = ${id}`
          yield* TestClock.adjust(60_000)
          yield* fire
          const { held_reason, state } = yield* requestRow(launch.launch_id)
          return [state, held_reason]
        })
        const changed = ["held", "changed_since_approval"]
        assert.deepStrictEqual(yield* becomes("sha256:2", w.fern), changed)
        assert.deepStrictEqual(yield* becomes("sha256:1", yield* institution()), changed)
        assert.deepStrictEqual(yield* becomes("sha256:2", w.fern), changed)
        // The changed project is proposed and approved like any other.
        yield* sign(yield* propose(id, w.pat), "administrator", w.abe)
        assert.strictEqual((yield* projectRow(id)).state, "launched")
        assert.strictEqual((yield* requestRow(launch.launch_id)).state, "superseded")
      })))

    it.effect("an approved launch waits while its institution is suspended or lacks the domain", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const made = yield* website(w, w.pat)
        yield* sign(made, "administrator", w.ada)
        const launch = yield* propose(made.project_id, w.pat)
        yield* sign(launch, "administrator", w.abe)
        yield* workJobs
        const { sql } = yield* Database
        const becomes = Effect.fnUntraced(function* (status: string, domains: ReadonlyArray<string>) {
          yield* sql`update institutions set status = ${status}, verified_domains = ${[
            ...domains,
          ]} where id = ${w.fern}`
          yield* TestClock.adjust(60_000)
          yield* fire
          const { held_reason, state } = yield* requestRow(launch.launch_id)
          return [state, held_reason]
        })
        assert.deepStrictEqual(yield* becomes("suspended", ["fern.example"]), ["held", "institution_not_active"])
        assert.deepStrictEqual(yield* becomes("active", ["moss.example"]), ["held", "launch_url_unverified"])
        assert.deepStrictEqual(yield* becomes("active", ["fern.example"]), ["launched", null])
      })))

    it.effect("redirect URIs that came during a rollout's hold reach the client", () =>
      timed(Effect.gen(function* () {
        const w = yield* fixture
        const rollouts = yield* Rollouts
        const address = `https://${randomUUID()}.example`
        const made = yield* website(w, w.pat, { website: address }, [])
        const id = made.project_id
        yield* sign(made, "administrator", w.ada)
        yield* workJobs
        const launch = yield* propose(id, w.pat)
        yield* sign(launch, "administrator", w.abe)
        assert.strictEqual((yield* requestRow(launch.launch_id)).held_reason, "redirect_uri_missing")
        yield* run(rollouts.set(id, "hold", "a drill"))
        yield* TestClock.adjust(60_000)
        yield* fire
        assert.strictEqual((yield* requestRow(launch.launch_id)).held_reason, "rollout_held")
        yield* tell("project", {
          id,
          version: 1,
          institution_id: w.fern,
          name: "Portal",
          website: address,
          environment: "staging",
          connector_kind: "standard_oidc",
          state: "registered",
          redirect_uris: ["https://portal.fern.example/cb"],
        })
        yield* run(rollouts.set(id, "release", "a drill"))
        yield* TestClock.adjust(60_000)
        yield* fire
        assert.strictEqual((yield* projectRow(id)).state, "launched")
        yield* workJobs
        const { sql } = yield* Database
        const [client] = yield* sql<{ uris: ReadonlyArray<string> }>`
          select metadata -> 'redirect_uris' as uris from embedded_clients e
          join provider_clients c on c.client_id = e.client_id where c.project_id = ${id}`
        assert.deepStrictEqual(client!.uris, ["https://portal.fern.example/cb"])
      })))
  },
)
