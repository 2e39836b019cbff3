/** A withdrawal by the feed has the effects of one by the API; over the whole app, whose other parts must notice. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import { SessionActivity } from "../../../services/people/SessionActivity.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { reason } from "../../support/Fixtures.ts"
import { access, institution, member, owner, person, project, tell } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"

/** A launched project with a client, a session of it, an approved and a proposed grant, and an open request. */
const fixture = Effect.gen(function* () {
  const { sql } = yield* Database
  const { add, work } = yield* ProviderJobs
  const grants = yield* ServiceGrants
  const requests = yield* Requests
  const [fern, owen, ada, pat] = [yield* institution(), yield* person(), yield* person(), yield* person()]
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  yield* owner(portal, owen)
  yield* access(fern, portal, pat)
  yield* add({ kind: "client.create", projectId: portal })
  yield* Effect.repeat(work, { while: (more) => more })
  const [{ client_id }] = (yield* sql`select client_id from projects where id = ${portal}`) as [{ client_id: string }]
  const proposal = {
    personId: owen,
    projectId: portal,
    service_id: "portal",
    capabilities: ["events.read"] as const,
    reason,
    environment: "production" as const,
  }
  const approved = yield* run(grants.propose(proposal))
  yield* run(grants.approve({
    personId: ada,
    projectId: portal,
    grantId: approved.id,
    expectedVersion: 1,
    reason,
    stepUp: Effect.void,
  }))
  const proposed = yield* run(grants.propose(proposal))
  const asked = yield* run(
    requests.access({ personId: yield* person(), institution_id: fern, project_id: portal, reason }),
  )
  const headers = yield* bearer(pat, { clientId: client_id, sid: `sid-${portal}` })
  const unseen = yield* bearer(pat, { clientId: client_id, sid: `unseen-${portal}` })
  const comes = ({ authorization }: { readonly authorization: string }) =>
    CallerAuthentication.use(({ recognise }) => recognise(authorization, { userAgent: null, address: null }))
  const come = comes(headers)
  yield* come
  yield* SessionActivity.use(({ flush }) => flush)
  return {
    fern,
    portal,
    pat,
    approved: approved.id,
    proposed: proposed.id,
    asked,
    come,
    comeUnseen: comes(unseen),
    owen,
  }
})

const line = (portal: string, fern: string, state: string) => ({
  id: portal,
  version: 2,
  institution_id: fern,
  name: "Portal",
  website: `https://${portal}.example`,
  state,
  environment: "production",
  connector_kind: "standard_oidc",
  redirect_uris: [`https://${portal}.example/callback`],
})

const facts = Effect.fnUntraced(function* (portal: string) {
  const { sql } = yield* Database
  return yield* sql<{ kind: string; by: string }>`
    select kind, payload ->> 'initiating_entity' as by from lifecycle_events
    where project_id = ${portal} order by position`
})

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Projects that the feed changes", (it) => {
  for (const how of ["withdrawn", "removed"] as const) {
    it.effect(`${how}: grants, client, sessions and requests end with the project, its Access stays`, () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { approved, asked, come, comeUnseen, fern, pat, portal, proposed } = yield* fixture
        const before = (yield* facts(portal)).length
        if (how === "withdrawn") yield* tell("project", line(portal, fern, "withdrawn"))
        else yield* tell("project", { id: portal, version: 2, removed: true })

        assert.deepStrictEqual(
          yield* sql`select id::text as id, state, revoked_by from service_grants where project_id = ${portal} order by id`,
          [approved, proposed].map((id) => ({ id, state: "revoked", revoked_by: null })),
        )
        assert.deepStrictEqual((yield* facts(portal)).slice(before), [
          { kind: "service-grant-revoked", by: "system" },
          { kind: "project-withdrawn", by: "system" },
          { kind: "session-revoked", by: "system" },
        ])
        assert.strictEqual((yield* Effect.flip(come)).code, "invalid_token")
        // This session has no row yet, and is refused as well.
        assert.strictEqual((yield* Effect.flip(comeUnseen)).code, "invalid_token")
        assert.deepStrictEqual(
          yield* sql`select r.state, v.state as review from requests r join policy_reviews v on v.request_id = r.id
            where r.id = ${asked.request_id}::uuid`,
          [{ state: "declined", review: "superseded" }],
        )
        assert.deepStrictEqual(
          yield* sql`select state from access where project_id = ${portal} and person_id = ${pat}`,
          [{ state: "active" }],
        )
        const { work } = yield* ProviderJobs
        yield* Effect.repeat(work, { while: (more) => more })
        assert.deepStrictEqual(
          yield* sql`select c.disabled as known, e.disabled as there from provider_clients c
            join embedded_clients e on e.client_id = c.client_id where c.project_id = ${portal}`,
          [{ known: true, there: true }],
        )
        // A second line about the withdrawn project has no effect.
        const after = (yield* facts(portal)).length
        yield* tell("project", { ...line(portal, fern, "withdrawn"), version: 3, name: "Old portal" })
        assert.lengthOf(yield* facts(portal), after)
      }))
  }

  it.effect("a project that goes on keeps what it has, and its client gets the changes", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { come, fern, portal } = yield* fixture
      const updates = sql<{ state: string }>`
        select state from provider_jobs where project_id = ${portal} and kind = 'client.update'`
      const results = yield* (yield* Directory).apply([
        JSON.stringify({ kind: "project", ...line(portal, fern, "held") }),
      ])
      assert.strictEqual(results[0]!._tag, "applied")
      assert.lengthOf(
        yield* sql`select from service_grants where project_id = ${portal} and state = 'revoked'`,
        0,
      )
      assert.lengthOf(yield* sql`select from provider_jobs where project_id = ${portal} and kind = 'client.disable'`, 0)
      assert.lengthOf(yield* updates, 0)
      const redirect_uris = [`https://${portal}.example/elsewhere`]
      yield* tell("project", { ...line(portal, fern, "held"), version: 3, name: "New portal", redirect_uris })
      const { work } = yield* ProviderJobs
      yield* Effect.repeat(work, { while: (more) => more })
      assert.deepStrictEqual(yield* updates, [{ state: "effective" }])
      assert.deepStrictEqual(
        yield* sql`select e.metadata->>'client_name' as name, e.metadata->'redirect_uris' as uris
          from embedded_clients e where e.reference = ${`bailiwick:${portal}`}`,
        [{ name: "New portal", uris: redirect_uris }],
      )
      // A line without redirect URIs changes none.
      yield* tell("project", { ...line(portal, fern, "held"), version: 4, name: "Portal", redirect_uris: undefined })
      yield* tell("project", { ...line(portal, fern, "held"), version: 5, name: "Old portal", redirect_uris: [] })
      assert.lengthOf(yield* updates, 1)
      // Nor does it while a change of them is still on its way to the client.
      yield* tell("project", { ...line(portal, fern, "held"), version: 6, name: "Newest portal", redirect_uris })
      yield* tell("project", { ...line(portal, fern, "held"), version: 7, name: "Old portal", redirect_uris: [] })
      yield* Effect.repeat(work, { while: (more) => more })
      assert.deepStrictEqual(
        yield* sql`select e.metadata->'redirect_uris' as uris, c.expected->'redirect_uris' as known
          from embedded_clients e join provider_clients c on c.client_id = e.client_id
          where e.reference = ${`bailiwick:${portal}`}`,
        [{ uris: redirect_uris, known: redirect_uris }],
      )
      yield* come
    }))
})
