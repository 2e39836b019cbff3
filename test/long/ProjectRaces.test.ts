/**
 * Concurrent commands on one project by everyone with a right to it, by the directory and by provider jobs: each
 * succeeds or is refused with a reason, and at rest the provider holds no client of an ended project, and right clients
 * of all others.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { Directory } from "../../services/directory/Directory.ts"
import { identityKinds } from "../../src/IdentityKinds.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { watchingProjects } from "../../services/projects/DirectoryWatch.ts"
import { type RolloutAction, Rollouts } from "../../services/projects/Rollouts.ts"
import {
  askAccess,
  codeOf,
  decline,
  fire,
  type Fixture,
  fixture,
  own,
  projectRow,
  propose,
  services,
  sign,
  website,
  withdraw,
  workJobs,
} from "../services/decisions/RequestFixture.ts"
import { reason } from "../support/Fixtures.ts"
import { access } from "../support/TestIdentity.ts"

/** Refusals that the loser of a race may get. */
const refusals = [
  "dependency_unavailable",
  "environment_held",
  "invalid_state",
  "last_owner",
  "request_exists",
  "version_conflict",
]

const rollout = (id: ProjectId, action: RolloutAction) =>
  codeOf(Effect.flatMap(Rollouts, ({ set }) => run(set(id, action, reason))))

const history = Effect.fnUntraced(function* (w: Fixture, round: number) {
  const { sql } = yield* Database
  const { apply } = yield* Directory
  const made = yield* website(w, w.pat)
  const id = made.project_id
  yield* access(w.fern, id, w.ola)
  let version = 0
  const line = Effect.suspend(() => {
    const nth = ++version
    const states = ["registered", "held", "launched", "launch_proposed"]
    return apply([JSON.stringify({
      kind: "project",
      id,
      version: nth,
      institution_id: w.fern,
      name: `Portal ${nth}`,
      website: `https://${id}.example`,
      environment: "staging",
      connector_kind: "standard_oidc",
      state: states[nth % 4],
      redirect_uris: [`https://portal.fern.example/${nth % 2}`],
    })])
  })
  const launch = (settled: typeof sign | typeof decline) =>
    codeOf(Effect.flatMap(propose(id, w.pat), (proposed) => settled(proposed, "administrator", w.abe)))
  const due = sql`update timers set not_before = 'epoch' where claim is null`
  const end = Effect.flatMap(projectRow(id), ({ revision }) => withdraw(w.fern, id, w.ada, revision)).pipe(
    Effect.retry({ times: 50, while: (error) => "code" in error && error.code === "version_conflict" }),
  )
  const going = [
    codeOf(sign(made, "administrator", w.ada)),
    ...[launch(sign), launch(decline), line, line, line, workJobs, workJobs, Effect.andThen(due, fire)],
    ...[codeOf(own(id, w.ada, w.oz)), codeOf(own(id, w.ada, w.oz, false)), codeOf(askAccess(w.fern, id, w.sam))],
    ...[rollout(id, "hold"), rollout(id, "release")],
  ]
  const last = [
    ...round % 2 === 0 ? [rollout(id, "fail"), rollout(id, "release")] : [],
    ...round % 3 > 0 ? [codeOf(end)] : [],
  ]
  for (const [nth, acts] of [going, going, [...going, ...last]].entries()) {
    const order = fc.shuffledSubarray(acts, { minLength: acts.length })
    const [shuffled] = fc.sample(order, { seed: 3 * round + nth, numRuns: 1 })
    const told = yield* Effect.all(shuffled!, { concurrency: 4 })
    for (const code of told) if (typeof code === "string" && code !== "done") assert.include(refusals, code)
  }
})

const watched = Directory.layer(watchingProjects(identityKinds)).pipe(
  Layer.provideMerge(Layer.provideMerge(Rollouts.layer, services)),
)

layer(watched, { excludeTestServices: true, timeout: "120 seconds" })("Projects under concurrent commands", (it) => {
  it.effect("at rest each client matches its project, and no ended project has one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const w = yield* fixture
      for (let round = 0; round < 24; round++) yield* history(w, round)
      yield* workJobs
      assert.isEmpty(yield* sql`select from provider_jobs where state <> 'effective' and not held`)
      const clients = yield* sql<{ state: string; mine: boolean; known: boolean }>`
        select p.state, (e.metadata->>'client_name', e.metadata->'redirect_uris') = (p.name, to_jsonb(p.redirect_uris))
          as mine, c.client_id = e.client_id and c.client_id = p.client_id as known
        from projects p join embedded_clients e on e.reference = 'bailiwick:' || p.id and not e.disabled
        left join provider_clients c on c.project_id = p.id and not c.disabled`
      assert.isNotEmpty(clients)
      for (const client of clients) {
        assert.notStrictEqual(client.state, "withdrawn")
        assert.deepInclude(client, { mine: true, known: true })
      }
    }))
})
