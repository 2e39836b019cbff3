/** Fixture of transmitter tests: the directory, a project whose service has an approved grant, and its signer. */
import { Effect, Layer } from "effect"
import { exportJWK } from "jose"
import { randomUUID } from "node:crypto"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { EventSigner, lifecycleIssuer } from "../../../services/lifecycle/EventSigner.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { keyCache } from "../../../sdk/Keys.ts"
import type { Pins } from "../../../sdk/Verify.ts"
import type { Capability } from "../../../schemas/identity/ServiceGrant.ts"
import { identity, institution, link, member, owner, person, project } from "../../support/TestIdentity.ts"
import { vault } from "../../support/TestVault.ts"

export type Key = Awaited<ReturnType<typeof exportJWK>>

export const publicUrl = new URL("https://id.example")
export const services = "https://services.example"

export const transmitter = Layer.mergeAll(
  EventSigner.layer(publicUrl),
  CursorApi.layer(publicUrl),
  ServiceGrants.layer({ issuers: [services] }),
).pipe(
  Layer.provide(Roles.layer),
  Layer.provideMerge(SigningKeys.layer),
  Layer.provideMerge(vault),
  Layer.provideMerge(identity),
)

export const capabilities: ReadonlyArray<Capability> = ["events.read", "snapshot.read", "cursor.acknowledge"]

export interface Scene {
  readonly institution: InstitutionId
  readonly project: ProjectId
  readonly owner: PersonId
  readonly administrator: PersonId
  /** The caller: a service and the project it asks about. */
  readonly asking: { readonly issuer: string; readonly clientId: string; readonly projectId: ProjectId }
}

/** Approves a grant of the service; returns its id. */
export const grant = Effect.fnUntraced(function* (
  { administrator, owner, project }: Pick<Scene, "administrator" | "owner" | "project">,
  clientId: string,
  can: ReadonlyArray<Capability> = capabilities,
) {
  const grants = yield* ServiceGrants
  const about = { projectId: project, reason: "to keep in step" }
  const { id } = yield* run(grants.propose({
    ...about,
    personId: owner,
    service_id: clientId,
    capabilities: [...can],
    environment: "production",
  }))
  yield* run(grants.approve({
    ...about,
    personId: administrator,
    grantId: id,
    expectedVersion: 1,
    stepUp: Effect.void,
  }))
  return id
})

/** A launched project whose product runs version 1, and whose service may do everything. */
export const scene = Effect.gen(function* () {
  const fern = yield* institution()
  const [olga, ada] = [yield* person(), yield* person()]
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  yield* owner(portal, olga)
  yield* link(portal, "1")
  const clientId = `client-${randomUUID()}`
  const made: Scene = {
    institution: fern,
    project: portal,
    owner: olga,
    administrator: ada,
    asking: { issuer: services, clientId, projectId: portal },
  }
  const grantId = yield* grant(made, clientId)
  return { ...made, grantId }
})

/** Signs every unsigned event. */
export const signAll = Effect.gen(function* () {
  const { signDue } = yield* EventSigner
  while (yield* signDue);
})

/** The options by which a product verifies this transmitter's messages. */
export const pinsFor = Effect.fnUntraced(function* (projectId: string) {
  const keys = yield* SigningKeys
  const jwks = yield* keys.jwks
  const pins: Pins = {
    issuer: lifecycleIssuer(publicUrl),
    audience: `urn:bailiwick:project:${projectId}`,
    keys: keyCache(() => Promise.resolve(jwks))(yield* keys.keySet),
    now: () => Date.now() / 1_000,
  }
  return pins
})

/** All events of a project after a cursor, or of its epoch, page by page. */
export const everything = Effect.fnUntraced(function* (asking: Scene["asking"], after?: string, limit = 7) {
  const { events } = yield* CursorApi
  const items: Array<{ readonly position: number; readonly jti: string; readonly set: string }> = []
  const { sql } = yield* Database
  const [head] = yield* sql<{ epoch: number }>`
    select epoch from lifecycle_heads where project_id = ${asking.projectId}`
  let cursor = after ?? encodeCursor({ epoch: head?.epoch ?? 1, position: 0 })
  for (;;) {
    const page = yield* events({ ...asking, after: cursor, limit, waitMillis: 0 })
    items.push(...page.items)
    cursor = page.cursor
    if (!page.more) return { items, cursor, head: page.head }
  }
})
