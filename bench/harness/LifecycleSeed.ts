/**
 * Launched projects of one institution, each with a service of its own that may do everything, and their histories,
 * appended by the same `EventLog` as the program's decisions.
 */
import { Effect, Layer, References } from "effect"
import { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { EventLog, type NewLifecycleEvent } from "../../services/lifecycle/EventLog.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { runOnce } from "../../services/platform/database/UnitOfWork.ts"

/** The issuer of the services' tokens. */
export const issuer = "https://services.bench.example"
export const installedVersion = "1.0.0"

const institutionId = InstitutionId.make("institution-bench")

export const projectId = (n: number): ProjectId => ProjectId.make(`project-${n}`)
/** The only service of project n. */
export const clientId = (n: number): string => `service-${n}`
/** `aud` of a project's messages. */
export const audience = (n: number): string => `urn:bailiwick:project:${projectId(n)}`

/** `projects` projects and their services' approved grants. */
export const fill = (projects: number) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    const ids = Array.from({ length: projects }, (_, n) => projectId(n))
    const clients = Array.from({ length: projects }, (_, n) => clientId(n))
    const at = new Date("2025-01-01")
    yield* sql`insert into institutions (id, updated_at, name, status)
      values (${institutionId}, ${at}, 'Fern', 'active')`
    yield* sql`insert into projects (id, updated_at, institution_id, name, website, environment, connector_kind, state,
        installed_version)
      select id, ${at}, ${institutionId}, id, 'https://' || id || '.example', 'production', 'service_connector',
        'launched', ${installedVersion}
      from unnest(${ids}::text[]) id`
    yield* sql`insert into service_grants (id, project_id, service_id, service_issuer, capabilities, environment, state,
        revision, reason, proposed_by, proposed_at, approved_by, approved_at, approval_reason)
      select gen_random_uuid(), project_id, client_id, ${issuer},
        array['events.read', 'snapshot.read', 'cursor.acknowledge', 'stream.manage'], 'production', 'approved', 2,
        'to keep in step', 'olga', ${at}, 'ada', ${at}, 'agreed'
      from unnest(${ids}::text[], ${clients}::text[]) g(project_id, client_id)`
    yield* sql`analyze`
  })

const personOf = (k: number): NonNullable<NewLifecycleEvent["person"]> => ({
  id: PersonId.make(`person-${k}`),
  issuer: "https://id.example",
  subject: `person-${k}`,
})

const access = (project: number, k: number, version: number) => ({
  access_id: `access-${project}-${k}`,
  version,
  ...(version === 1 ? {} : { previous_version: version - 1 }),
  role: version === 1 ? "user" : "editor",
})

const reason = (code: string) => ({ reason_admin: { en: `${code}_BY_ADMINISTRATOR` } })

/** The first event about person `k` in a project. */
export const granted = (project: number, k: number): NewLifecycleEvent => ({
  kind: "access-granted",
  projectId: projectId(project),
  institutionId,
  person: personOf(k),
  payload: { ...reason("ACCESS_GRANTED"), access: access(project, k, 1) },
  initiatedBy: "admin",
})

/**
 * Event `n` of a project's history: a person gets Access, another role, and then loses the Access or is disabled; last,
 * the sessions end.
 */
export const lived = (project: number, n: number): NewLifecycleEvent => {
  const k = Math.floor(n / 4)
  const first = granted(project, k)
  const leaves = k % 2 === 0
  switch (n % 4) {
    case 0:
      return first
    case 1:
      return {
        ...first,
        kind: "token-claims-change",
        payload: {
          ...reason("ACCESS_ROLE_CHANGED"),
          access: access(project, k, 2),
          claims: { role: "editor" },
        },
      }
    case 2:
      return leaves
        ? { ...first, kind: "access-revoked", payload: { ...reason("ACCESS_REVOKED"), access: access(project, k, 3) } }
        : { ...first, kind: "account-disabled", payload: reason("ACCOUNT_DISABLED") }
    default:
      return { ...first, kind: "session-revoked", payload: reason("SESSIONS_REVOKED") }
  }
}

/** Wake-up signals that do nothing: no process waits for a fixture's rows. */
export const silent = Layer.succeed(WakeUps, {
  notify: () => Effect.void,
  notifyUnsafe: () => {},
  waiter: () => Effect.succeed({ wait: () => Effect.never }),
  wait: () => Effect.never,
})

/** Appends `count` events, `together` of them a transaction. */
export const tell = (count: number, together: number, eventOf: (n: number) => NewLifecycleEvent) =>
  Effect.gen(function* () {
    const eventLog = yield* EventLog
    for (let from = 0; from < count; from += together) {
      const some = Array.from({ length: Math.min(together, count - from) }, (_, i) => eventOf(from + i))
      yield* runOnce(eventLog.append(...some))
    }
  }).pipe(
    Effect.provide(EventLog.layer.pipe(Layer.provide(silent))),
    // As in the program without a collector.
    Effect.provideService(References.TracerEnabled, false),
  )
