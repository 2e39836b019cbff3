/**
 * A person requests Access to a project, which need not be visible to the person otherwise; or a later end of the Access
 * that the person has.
 */
import { Clock, Effect } from "effect"
import { type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { presentEnd } from "../../access/AccessEndRows.ts"
import { isLater } from "../../access/AccessTerm.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { activeRow, isActiveIn } from "./ActivePerson.ts"
import { accessOf } from "./RequestViews.ts"
import { type By, filing, namesOf, openOf } from "./Filing.ts"

interface Project {
  readonly state: string
  /** Null: the person has no Access. */
  readonly held: { readonly ends_at: string | null } | null
}

interface Loaded {
  readonly active: string
  readonly project: string
  readonly open: string
}

/** What is asked for; without an end the Access lasts. */
export interface AccessAsked extends Wire.RequestCreate, By {
  readonly ends_at?: string
}

/** The requested end; 422 where it is not in the future. */
const endOf = ({ ends_at }: AccessAsked, now: Date): Effect.Effect<Date | null, HTTPValidationError> => {
  if (ends_at === undefined) return Effect.succeed(null)
  const end = new Date(ends_at.toUpperCase())
  return end > now
    ? Effect.succeed(end)
    : Effect.fail(HTTPValidationError.at(["body", "ends_at"], "datetime_future", "Input should be in the future"))
}

/** States of a project to which Access can be granted. */
export const live: ReadonlyArray<string> = ["registered", "launch_proposed", "launched", "held"]

export const askingForAccess = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed, mustBeNew } = yield* filing
  const added = newRequest(sql)

  /** The requested project, and the Access that the person has to it. */
  const projectRow = (personId: PersonId, { institution_id, project_id }: Wire.RequestCreate): Question => ({
    rows: sql`
      select state, (
        select json_build_object('ends_at', ${sql.literal(presentEnd)}) from access
        where project_id = ${project_id} and person_id in ${namesOf(sql, personId)}
          and state = 'active' and not removed
        order by ${sql.literal(presentEnd)} desc nulls first limit 1) as held
      from projects
      where id = ${project_id} and institution_id = ${institution_id} and not removed`,
    lock: sql`for share`,
  })

  const decide = Effect.fnUntraced(function* (loaded: Loaded, end: Date | null, now: Date) {
    if (!isActiveIn(loaded.active)) return yield* new InvalidToken()
    const [project] = JSON.parse(loaded.project) as ReadonlyArray<Project>
    if (project === undefined) return yield* new NotFound()
    if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: live })
    const held = project.held === null ? undefined : project.held.ends_at
    if (held !== undefined && !isLater(end?.getTime() ?? null, held === null ? null : Date.parse(held))) {
      return yield* new InvalidState({ state: "active", allowed: ["revoked"] })
    }
    yield* mustBeNew(loaded.open, now)
  })

  return Effect.fn("Requests.access")(function* (asked: AccessAsked) {
    const { institution_id, personId, project_id, reason } = asked
    const now = new Date(yield* Clock.currentTimeMillis)
    const [person, project] = [activeRow(sql, personId), projectRow(personId, asked)]
    const open = openOf(
      sql,
      sql`kind = 'access' and project_id = ${project_id} and author in ${namesOf(sql, personId)}`,
    )
    const loaded = yield* load<Loaded>(
      sql,
      sql`select ${answerTo(sql, person)} as active, ${answerTo(sql, project)} as project, ${open} as open`,
    )

    const end = yield* endOf(asked, now)
    yield* decide(loaded, end, now)
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "access",
      state: "submitted",
      author: personId,
      institutionId: institution_id,
      projectId: project_id,
      fields: end === null ? {} : { ends_at: end.toISOString() },
      reason,
      // Beyond its end there is nothing to decide.
      expiresAt: new Date(Math.min(now.getTime() + reviewWindow, end?.getTime() ?? Infinity)),
    }, now)

    const [active, there] = [unchanged(sql, person, loaded.active), unchanged(sql, project, loaded.project)]
    yield* fence(sql, active, there, added(row))
    return accessOf(row, yield* filed(row, ["sponsor", "administrator"]))
  })
})
