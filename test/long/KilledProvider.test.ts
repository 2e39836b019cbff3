/**
 * The program is killed with SIGKILL at each step of a create, an update and a disable at a real provider, and started
 * again: there are never two clients of one reference, no call that may have succeeded is repeated by itself, and after
 * an operator's look every client is as it should be.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { Database } from "../../services/platform/database/Database.ts"
import type { ProviderFault } from "../../services/platform/Failpoints.ts"
import { Operations } from "../../services/projects/Operations.ts"
import type { ProviderJobKind } from "../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../services/projects/ReviewedJobs.ts"
import { until } from "../e2e/support/Until.ts"
import { reason } from "../support/Fixtures.ts"
import { add, atProvider, clientOf, decide, fixture, work } from "../services/projects/ProviderFixture.ts"
import { initialAccessToken, type Made } from "../support/OidcProvider.ts"
import { home, start } from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { project } from "../support/TestIdentity.ts"
import { testKeys } from "../support/TestVault.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"

const points: ReadonlyArray<ProviderFault & `provider.${string}`> = [
  ...["provider.claimed", "provider.begun", "provider.answered", "provider.settled"] as const,
]
const kinds: ReadonlyArray<ProviderJobKind> = ["client.create", "client.update", "client.disable"]

const environment = Effect.fnUntraced(function* (registrationEndpoint: string) {
  const { ownerUrl, url: databaseUrl } = yield* TestDatabase
  const { url: natsUrl } = yield* TestBus.make
  return {
    BAILIWICK_HOME: yield* home,
    BAILIWICK_KEYS: testKeys,
    PORT: "0",
    DATABASE_URL: Redacted.value(databaseUrl),
    DATABASE_OWNER_URL: Redacted.value(ownerUrl),
    NATS_URL: Redacted.value(natsUrl),
    PUBLIC_URL: "https://id.example",
    IDENTITY_PROVIDER: JSON.stringify({
      registration_endpoint: registrationEndpoint,
      initial_access_token: initialAccessToken,
    }),
    ROLES: "timers",
    LOG_LEVEL: "warn",
  }
})

/** Waits until no job needs an operator. */
const settled = (oz: PersonId) =>
  Effect.flatMap(Operations, (operations) => Effect.map(operations.jobs(oz), (jobs) => jobs.map(({ state }) => state)))

/** An operator's work on ambiguous jobs: look, and where the look cannot, name what the provider has. */
const review = Effect.fnUntraced(function* (oz: PersonId, made: ReadonlyArray<Made>) {
  const reviewed = yield* ReviewedJobs
  const { ambiguous } = yield* (yield* Operations).diagnostics(oz)
  for (const { job_id: jobId, kind, project_id, provider_reference } of ambiguous) {
    const asked = { personId: oz, jobId, reason }
    const looked = yield* decide(reviewed.reconcile(asked))
    if (looked.state !== "ambiguous") continue
    // The management token of an update was lost with its answer.
    const there = made.find((one) => one.live && one.software_id === provider_reference)
    if (kind === "client.create" && there === undefined) yield* run(reviewed.retry(asked))
    else {
      yield* decide(reviewed.repair({
        ...asked,
        clientId: there?.client_id ?? (yield* clientOf(project_id!))!,
        managementUri: there?.registration_client_uri ?? null,
        managementToken: there === undefined ? null : Redacted.make(there.registration_access_token),
      }))
    }
  }
})

/** Killed at the Nth hit of a failpoint, with a job of each kind running. */
const killedAt = (point: string, hit: number) =>
  atProvider(({ interference, made, registrationEndpoint }) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const env = yield* environment(registrationEndpoint)
      const { fern, oz } = yield* fixture
      const [one, two, three] = yield* Effect.all([project(fern), project(fern), project(fern)])
      const projects: Readonly<Record<ProviderJobKind, ProjectId>> = {
        "client.create": one!,
        "client.update": two!,
        "client.disable": three!,
      }
      yield* add(two!)
      yield* add(three!)
      yield* work
      yield* sql`update projects set name = 'Renamed' where id = ${two!}`
      for (const kind of kinds) yield* add(projects[kind], kind)

      yield* Effect.scoped(Effect.gen(function* () {
        const doomed = yield* start({
          module: "test/long/support/FaultMain.ts",
          env: { ...env, FAULT: `${point}:${hit}` },
        })
        assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
      }))
      const next = yield* start({ env })
      yield* next.line(/bailiwick ready/)
      // The dead process's leases end, and jobs go on where their call was certainly not made.
      yield* until("what can be done alone", settled(oz), (states) =>
        !states.some((state) =>
          state === "pending" || state === "running"
        ), 300)
      const before = interference.seen.length
      const states = yield* settled(oz)
      assert.notInclude(states, "failed")
      // Before the first call and after the last settlement no job is ambiguous.
      const [clear, unclear] = [["provider.claimed:1", "provider.settled:3"], ["provider.begun", "provider.answered"]]
      if (clear.includes(`${point}:${hit}`)) {
        assert.notInclude(states, "ambiguous")
      }
      if (unclear.includes(point)) {
        assert.include(states, "ambiguous")
      }
      assert.strictEqual(interference.seen.length, before)
      for (const kind of kinds) {
        const live = made.filter((one) =>
          one.software_id === `bailiwick:${projects[kind]}` && one.live
        )
        assert.isAtMost(live.length, 1, kind)
      }

      yield* review(oz, made)
      yield* until("everything", settled(oz), (states) => states.every((state) => state === "effective"))
      for (const kind of kinds) {
        const own = made.filter((one) => one.software_id === `bailiwick:${projects[kind]}`)
        assert.lengthOf(own, 1, kind)
        assert.strictEqual(own[0]!.live, kind !== "client.disable", kind)
        assert.strictEqual(yield* clientOf(projects[kind]), own[0]!.client_id, kind)
      }
      const clients = yield* sql<{ project_id: string; disabled: boolean; name: string }>`
        select project_id, disabled, expected->>'client_name' as name from provider_clients order by made_at`
      const known = new Map(clients.map(({ project_id, ...rest }) => [project_id, rest]))
      assert.deepStrictEqual(kinds.map((kind) => known.get(projects[kind])), [
        { disabled: false, name: "Portal" },
        { disabled: false, name: "Renamed" },
        { disabled: true, name: "Portal" },
      ])
    }).pipe(Effect.scoped)
  )

describe.concurrent("the provider's work, killed", () => {
  for (const point of points) {
    for (const hit of [1, 3]) {
      it.live(`at hit ${hit} of ${point} there is no second client and no blind repeat`, () => killedAt(point, hit))
    }
  }
})
