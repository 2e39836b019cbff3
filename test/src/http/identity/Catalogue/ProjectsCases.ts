/** Operations of a project, and an operator's on its jobs. */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { Database } from "../../../../../services/platform/database/Database.ts"
import { ProviderJobs } from "../../../../../services/projects/ProviderJobs.ts"
import { reason } from "../../../../support/Fixtures.ts"
import { owner, person, project } from "../../../../support/TestIdentity.ts"
import { ask, done } from "../IdentityClient.ts"
import type { IdentityStage } from "../IdentityStage.ts"
import { deadLetter, webhook } from "../../../../support/TestDeadLetters.ts"
import { type Case } from "./Case.ts"

const onProject = ({ project }: IdentityStage) => ({ project_id: project })

const grant = { service_id: "fern-backend", capabilities: ["events.read"], environment: "production", reason }

/** A service grant that waits for its administrator. */
export const proposedGrant = Effect.fnUntraced(function* (stage: IdentityStage) {
  const path = `/v1/projects/${stage.project}/lifecycle-service-grants`
  const { id } = done(yield* ask(stage.people.owner, "POST", path, grant))
  return { ...onProject(stage), grant_id: id as string }
})

/** The audit record of a proposed grant. */
const recordedGrant = Effect.fnUntraced(function* (stage: IdentityStage) {
  const { sql } = yield* Database
  const { grant_id } = yield* proposedGrant(stage)
  const [row] = yield* sql<{ id: string }>`
    select id::text as id from audit_records where subject = ${`service-grant:${grant_id}`}`
  return row!.id
}, Effect.orDie)

/** A job of a project of its own, in this state. */
const jobIn = Effect.fnUntraced(function* (stage: IdentityStage, state: "ambiguous" | "failed") {
  const { sql } = yield* Database
  const { add } = yield* ProviderJobs
  const id = yield* add({ kind: "client.create", projectId: yield* project(stage.institution), blocked: true })
  yield* sql`update provider_jobs set state = ${state}, held = false, begun_at = created_at where id = ${id}::uuid`
  return { job_id: id }
}, Effect.orDie)

/** A failed job whose client exists at the provider after all. */
const repairable = Effect.fnUntraced(function* (stage: IdentityStage) {
  const { sql } = yield* Database
  const { add, work } = yield* ProviderJobs
  const projectId = yield* project(stage.institution)
  const id = yield* add({ kind: "client.create", projectId })
  const done = sql<
    { client_id: string }
  >`select client_id from projects where id = ${projectId} and client_id is not null`
  yield* Effect.repeat(work, { while: (more) => more })
  const [{ client_id }] = (yield* done) as [{ client_id: string }]
  yield* sql`update provider_jobs set state = 'failed' where id = ${id}::uuid`
  return { params: { job_id: id }, body: { client_id, reason } }
}, Effect.orDie)

const launchable = Effect.fnUntraced(function* (stage: IdentityStage) {
  const project_id = yield* project(stage.institution, { state: "registered" })
  for (const who of ["owner", "owner2"] as const) yield* owner(project_id, stage.people[who])
  return { params: { project_id }, body: { launch_url: "https://portal.fern.example/", reason } }
})

/** A new webhook of no account's. */
const hook = Effect.suspend(() => {
  const id = randomUUID()
  return Effect.as(webhook(id, false), id)
})

const operates = { by: "operator", second: "operator", status: 200 } as const

export const projects: ReadonlyArray<Case> = [
  {
    operation: "lifecycle-service-grants.proposeLifecycleServiceGrant",
    by: "owner",
    second: "owner2",
    status: 201,
    asked: (stage) => Effect.succeed({ params: onProject(stage), body: grant }),
  },
  {
    operation: "lifecycle-service-grants.listLifecycleServiceGrants",
    by: "owner",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage), query: "?limit=1" }),
  },
  {
    operation: "lifecycle-service-grants.approveLifecycleServiceGrant",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: (stage) => Effect.map(proposedGrant(stage), (params) => ({ params, body: { expected_version: 1, reason } })),
  },
  {
    operation: "lifecycle-service-grants.revokeLifecycleServiceGrant",
    by: "owner",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.map(proposedGrant(stage), (params) => ({ params, body: { reason } })),
  },
  {
    operation: "websites.getProject",
    by: "owner",
    second: "sponsor",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage) }),
  },
  {
    operation: "websites.listLaunchProposals",
    by: "owner",
    second: "sponsor",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage), query: "?limit=2" }),
  },
  {
    operation: "websites.listProjectOwners",
    by: "owner",
    second: "sponsor",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage), query: "?limit=2" }),
  },
  {
    operation: "websites.listProjectEvents",
    by: "owner",
    second: "owner2",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage), query: "?limit=2" }),
  },
  {
    operation: "websites.proposeLaunch",
    by: "owner",
    second: "owner2",
    status: 201,
    asked: launchable,
  },
  {
    operation: "websites.changeProjectOwner",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: (stage) =>
      Effect.map(person(), (person_id) => ({ params: onProject(stage), body: { person_id, active: true, reason } })),
  },
  {
    operation: "operations.projectDiagnostics",
    by: "owner",
    second: "owner2",
    status: 200,
    asked: (stage) => Effect.succeed({ params: onProject(stage) }),
  },
  { operation: "operations.operationsDiagnostics", ...operates, asked: () => Effect.succeed({}) },
  { operation: "operations.listJobs", ...operates, asked: () => Effect.succeed({ query: "?limit=2" }) },
  { operation: "operator.doctor", ...operates, asked: () => Effect.succeed({}) },
  { operation: "operator.listDeadLetters", ...operates, asked: () => Effect.succeed({ query: "?limit=2" }) },
  {
    operation: "operator.countDeadLetters",
    ...operates,
    asked: () => Effect.map(hook, (id) => ({ query: `?since=2026-01-01T00:00:00Z&webhook_id=${id}` })),
  },
  {
    operation: "operator.replayDeadLetters",
    ...operates,
    asked: () => Effect.map(hook, (webhook_id) => ({ body: { webhook_id, since: "2026-01-01T00:00:00Z", reason } })),
  },
  {
    operation: "operator.replayDeadLetter",
    ...operates,
    asked: () =>
      Effect.map(
        Effect.flatMap(hook, (id) => deadLetter(id)),
        (delivery_id) => ({ params: { delivery_id }, body: { reason } }),
      ),
  },
  { operation: "operator.busStreams", ...operates, asked: () => Effect.succeed({}) },
  { operation: "operator.queues", ...operates, asked: () => Effect.succeed({}) },
  { operation: "operator.listBacklogs", ...operates, asked: () => Effect.succeed({ query: "?sort=backlog" }) },
  {
    operation: "operator.pauseWebhook",
    ...operates,
    asked: () => Effect.map(hook, (webhook_id) => ({ params: { webhook_id }, body: { reason } })),
  },
  {
    operation: "operator.resumeWebhook",
    ...operates,
    asked: (stage) =>
      Effect.tap(
        Effect.map(hook, (webhook_id) => ({ params: { webhook_id }, body: { reason } })),
        ({ body, params: { webhook_id } }) =>
          Effect.map(ask(stage.people.operator, "POST", `/v1/operations/webhooks/${webhook_id}/pause`, body), done),
      ),
  },
  {
    operation: "operator.kickWebhook",
    ...operates,
    asked: () => Effect.map(hook, (webhook_id) => ({ params: { webhook_id }, body: { reason } })),
  },
  {
    operation: "operator.listAccountNames",
    ...operates,
    asked: () => Effect.succeed({ query: "?ids=0199c0de-0000-7000-8000-000000000001" }),
  },
  {
    operation: "operator.listProjectNames",
    ...operates,
    asked: ({ project }) => Effect.succeed({ query: `?ids=${project},unknown` }),
  },
  {
    operation: "operator.proveDecision",
    ...operates,
    asked: (stage) => Effect.map(recordedGrant(stage), (record_id) => ({ params: { record_id } })),
  },
  { operation: "operator.listAudit", ...operates, asked: () => Effect.succeed({ query: "?limit=2&outcome=done" }) },
  {
    operation: "operations.reconcileJob",
    ...operates,
    asked: (stage) => Effect.map(jobIn(stage, "ambiguous"), (params) => ({ params, body: { reason } })),
  },
  {
    operation: "operations.retryJob",
    ...operates,
    asked: (stage) => Effect.map(jobIn(stage, "failed"), (params) => ({ params, body: { reason } })),
  },
  { operation: "operations.repairJob", ...operates, asked: repairable },
]
