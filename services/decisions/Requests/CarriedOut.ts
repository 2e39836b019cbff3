/**
 * Carries out a request for an institution, Access or a role, after its last signature. Each loads what it decides on
 * and adds fences, as commands of two round trips do (FencedCommand.ts); order of locks: person, institution,
 * memberships, project, request.
 */
import { Clock, Effect } from "effect"
import { AccessId, InstitutionId, type ProjectId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { memberships } from "../../people/Memberships.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, newRow, one, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { AccessVersions } from "../../access/AccessVersions.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { type RequestChange, requestRows } from "../../requests/RequestRows.ts"
import { activeIn, activeRow } from "./ActivePerson.ts"
import { live } from "./AskAccess.ts"
import { namesOf } from "./Filing.ts"

/** The role of an Access that was requested. */
const accessRole = "user"

interface Project {
  readonly rollout: string | null
  readonly state: string
}

interface AccessLoaded {
  readonly active: string
  readonly project: string
  /** The `xmin` of the person's row. */
  readonly written: string | null
  /** The Access that the person has, under any of its ids. */
  readonly held: string | null
}

const notActive = () => new InvalidState({ state: "author_not_active", allowed: ["active"] })

export const carryingOut = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const timers = yield* Timers
  const versions = yield* AccessVersions
  const rows = requestRows(sql)
  const { seat, seatAmong } = memberships(sql, yield* Outbox)

  const institution = newRow(sql, "institutions", {
    id: "text",
    name: "text",
    verified_domains: "text[]",
    status: "text",
    made_by: "text",
    approved_by: "text[]",
    created_at: "timestamptz",
    updated_at: "timestamptz",
  })

  const found = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const person = activeRow(sql, request.author)
    const { active } = yield* load<{ active: string }>(sql, sql`select ${answerTo(sql, person)} as active`)
    const founder = activeIn(active)
    if (founder === null) return yield* notActive()

    const id = InstitutionId.make(yield* ids.next)
    const at = new Date(yield* Clock.currentTimeMillis).toISOString()
    const { domains, name } = request.fields as { readonly domains: ReadonlyArray<string>; readonly name: string }
    const [made_by, approved_by] = [request.author, approvedBy]
    yield* fence(
      sql,
      unchanged(sql, person, active),
      institution({
        id,
        name,
        verified_domains: domains,
        status: "active",
        made_by,
        approved_by,
        created_at: at,
        updated_at: at,
      }),
    )
    const to = { institutionId: id, personId: founder.id, role: "sponsor", state: "active" } as const
    yield* seatAmong({ ...to, madeBy: made_by, approvedBy }, [])
    return { state: "approved", resultId: id } as const
  })

  const projectRow = (projectId: ProjectId): Question => ({
    rows: sql`select rollout, state from projects where id = ${projectId} and not removed`,
    lock: sql`for share`,
  })

  const mayEnter = Effect.fnUntraced(function* (loaded: AccessLoaded, projectId: ProjectId) {
    const holder = activeIn(loaded.active)
    if (holder === null) return yield* notActive()
    const [project] = JSON.parse(loaded.project) as ReadonlyArray<Project>
    if (project === undefined || project.state === "withdrawn") {
      return yield* new InvalidState({ state: "withdrawn", allowed: live })
    }
    if (project.rollout !== null) return yield* environmentHeld(projectId, project.rollout)
    return holder
  })

  /**
   * Grants Access. Writes the person's row, so that of two concurrent grants for one person the second sees the first.
   */
  const grant = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const { author, institution_id: institutionId, project_id } = request
    const projectId = project_id!
    const [person, project] = [activeRow(sql, author), projectRow(projectId)]
    const loaded = yield* load<AccessLoaded>(
      sql,
      sql`select ${answerTo(sql, person)} as active, ${answerTo(sql, project)} as project,
        (select xmin::text from people where id = canonical_person(${author})) as written, (
          select id from access
          where project_id = ${projectId} and state = 'active' and not removed
            and person_id in ${namesOf(sql, sql`canonical_person(${author})`)}
          limit 1) as held`,
    )
    const holder = yield* mayEnter(loaded, projectId)

    const alone = one((earlier) =>
      sql`update people set updated_at = updated_at
        where id = ${holder.id} and xmin = ${loaded.written}::xid and ${earlier} returning 1`
    )
    yield* fence(
      sql,
      loaded.held === null ? alone : unchanged(sql, person, loaded.active),
      unchanged(sql, project, loaded.project),
    )
    if (loaded.held !== null) return { state: "approved", resultId: loaded.held } as const
    const accessId = AccessId.make(yield* ids.next)
    const to = { accessId, institutionId: institutionId!, projectId, personId: holder.id, role: accessRole } as const
    const { eventId } = yield* versions.grant({ ...to, state: "active", madeBy: author, approvedBy }, holder)
    return { state: "approved", resultId: accessId, eventId } as const
  })

  const change = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const { role, state } = request.fields as Pick<Wire.MembershipChange, "role" | "state">
    const to = { institutionId: request.institution_id!, personId: request.person_id!, role, state }
    const resultId = yield* seat({ ...to, madeBy: request.author, approvedBy })
    return { state: "approved", resultId } as const
  })

  return Effect.fn("Requests.carryOut")(function* (decision: Decision) {
    const { request } = decision
    const to: RequestChange = yield* request.kind === "organization"
      ? found(decision)
      : request.kind === "access"
      ? grant(decision)
      : change(decision)
    const { id } = yield* rows.change(request, to)
    yield* timers.set(id, [])
  })
})
