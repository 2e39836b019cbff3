/** Fixture of provider jobs over either adapter, with the commands and queries of its tests. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { Job } from "../../../schemas/identity/Operation.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../services/platform/Failpoints.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { ClientDrift } from "../../../services/projects/ClientDrift.ts"
import { IdentityProvider } from "../../../services/projects/IdentityProvider.ts"
import { registration } from "../../../services/projects/IdentityProvider/ClientRegistration.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { type ProviderJobKind, ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { initialAccessToken, oidcProvider } from "../../support/OidcProvider.ts"
import { identity, institution, person, project } from "../../support/TestIdentity.ts"
import { vault } from "../../support/TestVault.ts"

export const over = <R>(provider: Layer.Layer<IdentityProvider, never, R>) =>
  Layer.mergeAll(ProviderJobs.layer, ReviewedJobs.layer, Operations.layer, ClientDrift.layer).pipe(
    Layer.provide(Roles.layer),
    Layer.provideMerge(provider),
    Layer.provideMerge(vault),
    Layer.provideMerge(identity),
  )

// The adapter's own limit of ten seconds is shorter.
const outbound = Outbound.layer({
  allowedCidrs: [],
  certificateAuthorities: [],
  timeoutMillis: 60_000,
  ownPorts: [],
})

export const fixture = Effect.gen(function* () {
  const [fern, oz] = yield* Effect.all([institution(), person({ operator: true })])
  return { fern, oz, portal: yield* project(fern) }
})

export const add = (projectId: ProjectId, kind: ProviderJobKind = "client.create", blocked = false) =>
  Effect.flatMap(ProviderJobs, (jobs) => run(jobs.add({ kind, projectId, blocked })))

export const work = Effect.flatMap(ProviderJobs, (jobs) => jobs.work)

/** The newest job as the API shows it. */
export const newest = (operator: PersonId) =>
  Effect.flatMap(Operations, (operations) => Effect.map(operations.jobs(operator), ([job]) => job!))

export const clientOf = (projectId: ProjectId) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.map(
      sql<{ client_id: string | null }>`select client_id from projects where id = ${projectId}`,
      ([row]) => row!.client_id,
    ))

/** The clients that the embedded provider holds for a project. */
export const held = (projectId: ProjectId) =>
  Effect.flatMap(Database, ({ sql }) =>
    sql<{ client_id: string; disabled: boolean }>`
      select client_id, disabled from embedded_clients where reference = ${`bailiwick:${projectId}`}`)

class Killed extends Error {}

/** Works until the failpoint `at`, where the process dies; after the lease another process frees its jobs. */
export const killedAt = (at: FaultPoint) =>
  Effect.gen(function* () {
    const hit = (point: FaultPoint) => {
      if (point === at) throw new Killed()
    }
    const exit = yield* Effect.exit(Effect.provideService(work, Failpoints, { hit }))
    assert.isTrue(Exit.isFailure(exit))
    const { sql } = yield* Database
    yield* sql`update provider_jobs set lease_until = 'epoch' where claim is not null`
    yield* (yield* ProviderJobs).free
  })

/** Settles a job by the result of an operator's look. */
export const decide = <E, R, E2, R2>(asking: Effect.Effect<Effect.Effect<Job, E, R>, E2, R2>) =>
  Effect.scoped(Effect.flatMap(asking, (settlement) => run(settlement)))

/** Runs a test beside a real provider of its own. */
export const atProvider = <A, E>(
  test: (provider: Effect.Success<typeof oidcProvider>) => Effect.Effect<
    A,
    E,
    ProviderJobs | ReviewedJobs | Operations | ClientDrift | Database | Layer.Success<typeof identity>
  >,
) =>
  Effect.gen(function* () {
    const real = yield* oidcProvider
    const adapter = registration({
      registrationEndpoint: real.registrationEndpoint,
      initialAccessToken: Redacted.make(initialAccessToken),
    }).pipe(Layer.provide(outbound))
    return yield* Effect.provide(test(real), over(adapter))
  }).pipe(Effect.scoped)
