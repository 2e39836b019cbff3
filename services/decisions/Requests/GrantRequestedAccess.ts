/** Grants the Access of an approved request. */
import { Effect } from "effect"
import { AccessId, type ProjectId } from "../../../schemas/BrandedIds.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { AccessVersions } from "../../access/AccessVersions.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, one, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { activeIn, activeRow, notActive } from "./ActivePerson.ts"
import { live } from "./AskAccess.ts"
import { namesOf } from "./Filing.ts"

/** The role of an Access that was requested. */
const accessRole = "user"

interface Project {
  readonly rollout: string | null
  readonly state: string
}

interface Loaded {
  readonly active: string
  readonly project: string
  /** The `xmin` of the person's row. */
  readonly written: string | null
  /** The Access that the person has, under any of its ids. */
  readonly held: string | null
}

const mayEnter = Effect.fnUntraced(function* (loaded: Loaded, projectId: ProjectId) {
  const holder = activeIn(loaded.active)
  if (holder === null) return yield* notActive()
  const [project] = JSON.parse(loaded.project) as ReadonlyArray<Project>
  if (project === undefined || project.state === "withdrawn") {
    return yield* new InvalidState({ state: "withdrawn", allowed: live })
  }
  if (project.rollout !== null) return yield* environmentHeld(projectId, project.rollout)
  return holder
})

export const grantingAccess = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const versions = yield* AccessVersions

  const projectRow = (projectId: ProjectId): Question => ({
    rows: sql`select rollout, state from projects where id = ${projectId} and not removed`,
    lock: sql`for share`,
  })

  /**
   * Writes the person's row, so that of two concurrent grants for one person the second sees the first.
   */
  return Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const { author, institution_id: institutionId, project_id } = request
    const projectId = project_id!
    const [person, project] = [activeRow(sql, author), projectRow(projectId)]
    const loaded = yield* load<Loaded>(
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
})
