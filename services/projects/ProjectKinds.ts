/**
 * The directory's kinds for projects, links and owners, in the order in which their rows may be locked. The state of a
 * project or owner that was decided here stays until the feed has sent the same. A project's installed version is that
 * of its newest link.
 */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import * as Feed from "../../schemas/identity/IdentityDirectory.ts"
import type { LifecycleEventKind } from "../../schemas/identity/LifecycleEventKinds.ts"
import type { DirectoryRow, Kind } from "../directory/Directory.ts"
import { EventLog, type NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import { persons } from "../people/PersonAudience.ts"
import { Database } from "../platform/database/Database.ts"
import { owners } from "./Owners.ts"

const ProjectRow = Schema.Struct({
  id: ProjectId,
  removed: Schema.Boolean,
  institution_id: Schema.NullOr(InstitutionId),
  state: Schema.NullOr(Feed.ProjectState),
})
type ProjectRow = typeof ProjectRow.Type
const projectOf = Schema.decodeUnknownSync(Schema.NullOr(ProjectRow))

const OwnerRow = Schema.Struct({
  id: Schema.String,
  removed: Schema.Boolean,
  project_id: Schema.NullOr(ProjectId),
  person_id: Schema.NullOr(PersonId),
})
const ownerOf = Schema.decodeUnknownSync(Schema.NullOr(OwnerRow))
const linkOf = Schema.decodeUnknownSync(Schema.NullOr(Schema.Struct({ project_id: Schema.NullOr(ProjectId) })))

/** The phase of a project for its products: none, registered, launched or withdrawn. */
const phaseOf = (row: ProjectRow | null) =>
  row === null || row.state === null
    ? "none"
    : row.removed || row.state === "withdrawn"
    ? "withdrawn"
    : row.state === "launched"
    ? "launched"
    : "registered"

/** The events of a project's change. A withdrawn project that comes back is registered anew. */
const eventKindsOf = (before: ProjectRow | null, after: ProjectRow): ReadonlyArray<LifecycleEventKind> => {
  const [was, is] = [phaseOf(before), phaseOf(after)]
  if (was === is || is === "none") return []
  const begins = was === "none" || was === "withdrawn" ? ["project-registered" as const] : []
  if (is === "withdrawn") return was === "none" ? [] : ["project-withdrawn"]
  return is === "launched" ? [...begins, "project-launched"] : begins
}

const named = (lines: ReadonlyArray<DirectoryRow>, field: string) =>
  lines.flatMap(({ fields }) => fields === null ? [] : [String(fields[field])])

/** SQL that keeps a decided column. `held`: a condition under which the column counts as decided in any case. */
const decided = (column: string, held = "false") => {
  const ours = `(t.${column}_decided or ${held})`
  return {
    [column]: `case when excluded.removed or (${ours} and excluded.${column} is distinct from t.${column}) ` +
      `then t.${column} else excluded.${column} end`,
    [`${column}_decided`]: `${ours} and (excluded.removed or excluded.${column} is distinct from t.${column})`,
  }
}

/** SQL: the project's rollout is held or failed, so a line may only withdraw the project. */
const inRollout = "(t.rollout is not null and t.state = 'held' and excluded.state is distinct from 'withdrawn')"

/** Gives projects the installed version of their newest link. */
const installed = (sql: PgClient.PgClient) => (projectIds: ReadonlyArray<string>) =>
  sql`update projects j set installed_version = l.installed_version, link_version = l.version
    from (select p.id, n.installed_version, coalesce(n.version, 0) as version
      from unnest(${[...projectIds]}::text[]) p(id) left join lateral (
        select l.installed_version, l.version from project_links l where l.project_id = p.id and not l.removed
        order by l.version desc, l.id collate "C" desc limit 1) n on true) l
    where j.id = l.id and (j.installed_version, j.link_version) is distinct from (l.installed_version, l.version)`

type Owners = ReturnType<typeof owners>

const projectKind = (
  eventLog: EventLog["Service"],
  link: ReturnType<typeof installed>,
  appendMissing: Owners["appendMissing"],
): Kind => ({
  kind: "project",
  table: "projects",
  ids: "text",
  fields: Feed.ProjectFields,
  columns: {
    institution_id: "text",
    name: "text",
    website: "text",
    environment: "text",
    connector_kind: "text",
    connector_product: "text",
    preview_digest: "text",
    redirect_uris: "text[]",
    state: "text",
  },
  defaults: { connector_kind: "standard_oidc", redirect_uris: [] },
  stamped: ["created_at"],
  set: { revision: "t.revision + 1", ...decided("state", inRollout) },
  history: {
    guard: { known: {}, fresh: {} },
    changed: Effect.fnUntraced(function* (beforeJson, afterJson) {
      const [before, after] = [projectOf(beforeJson), projectOf(afterJson)!]
      const institutionId = after.institution_id
      if (institutionId === null) return
      const events = eventKindsOf(before, after).map((kind): NewLifecycleEvent => ({
        kind,
        projectId: after.id,
        institutionId,
        initiatedBy: "system",
      }))
      yield* eventLog.append(...events)
    }),
  },
  after: (ids) => Effect.andThen(link(ids), appendMissing("project_id", ids)),
})

const linkKind = (link: ReturnType<typeof installed>): Kind => ({
  kind: "project_link",
  table: "project_links",
  ids: "text",
  fields: Feed.ProjectLinkFields,
  columns: { project_id: "text", installed_version: "text" },
  stamped: ["created_at"],
  set: { revision: "t.revision + 1" },
  history: {
    guard: { known: {}, fresh: {} },
    changed: (before, after) =>
      link([linkOf(before), linkOf(after)].flatMap((row) => row?.project_id == null ? [] : [row.project_id])),
  },
})

const ownerKind = (
  sql: PgClient.PgClient,
  people: ReturnType<typeof persons>,
  { appendLeft, appendMissing }: Owners,
): Kind => ({
  kind: "project_owner",
  table: "project_owners",
  ids: "text",
  fields: Feed.ProjectOwnerFields,
  columns: { project_id: "text", person_id: "text", active: "boolean" },
  defaults: { active: true },
  stamped: ["created_at", "since"],
  set: {
    revision: "t.revision + 1",
    ...decided("active"),
    since: "case when t.active and not t.removed then t.since else excluded.since end",
  },
  history: {
    guard: "kind",
    lock: Effect.fnUntraced(function* (lines) {
      yield* people.lock(named(lines, "person_id").map((id) => PersonId.make(id)))
      yield* sql`select from projects where id = any(${named(lines, "project_id")}::text[])
        order by id collate "C" for share`
    }),
    changed: Effect.fnUntraced(function* (beforeJson, afterJson) {
      const [before, after] = [ownerOf(beforeJson), ownerOf(afterJson)!]
      const moved = before !== null &&
        (before.project_id !== after.project_id || before.person_id !== after.person_id)
      if (moved && before.project_id !== null) yield* appendLeft(after.id, before.project_id, before.person_id!)
      yield* appendMissing("id", [after.id])
    }),
  },
})

export const projectKinds = Effect.gen(function* () {
  const { sql } = yield* Database
  const eventLog = yield* EventLog
  const ofOwners = owners(sql, eventLog)
  const link = installed(sql)
  const kinds: ReadonlyArray<Kind> = [
    projectKind(eventLog, link, ofOwners.appendMissing),
    linkKind(link),
    ownerKind(sql, persons(sql), ofOwners),
  ]
  return kinds
})
