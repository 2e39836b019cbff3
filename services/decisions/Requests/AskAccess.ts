/** A person requests Access to a project, which need not be visible to the person otherwise. */
import { Clock, Effect } from "effect"
import { type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { activeRow, isActiveIn } from "./ActivePerson.ts"
import { accessOf } from "./RequestViews.ts"
import { type By, filing, namesOf, openOf } from "./Filing.ts"

interface Loaded {
  readonly active: string
  readonly project: string
  readonly open: string
}

/** States of a project to which Access can be granted. */
export const live: ReadonlyArray<string> = ["registered", "launch_proposed", "launched", "held"]

export const askingForAccess = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed, mustBeNew } = yield* filing
  const added = newRequest(sql)

  /** The requested project, and whether the person has Access to it. */
  const projectRow = (personId: PersonId, { institution_id, project_id }: Wire.RequestCreate): Question => ({
    rows: sql`
      select state, exists (
        select from access
        where project_id = ${project_id} and person_id in ${namesOf(sql, personId)}
          and state = 'active' and not removed) as held
      from projects
      where id = ${project_id} and institution_id = ${institution_id} and not removed`,
    lock: sql`for share`,
  })

  const decide = Effect.fnUntraced(function* (loaded: Loaded, now: Date) {
    if (!isActiveIn(loaded.active)) return yield* new InvalidToken()
    const [project] = JSON.parse(loaded.project) as ReadonlyArray<{ state: string; held: boolean }>
    if (project === undefined) return yield* new NotFound()
    if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: live })
    if (project.held) return yield* new InvalidState({ state: "active", allowed: ["revoked"] })
    yield* mustBeNew(loaded.open, now)
  })

  return Effect.fn("Requests.access")(function* (asked: Wire.RequestCreate & By) {
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

    yield* decide(loaded, now)
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "access",
      state: "submitted",
      author: personId,
      institutionId: institution_id,
      projectId: project_id,
      fields: {},
      reason,
      expiresAt: new Date(now.getTime() + reviewWindow),
    }, now)

    const [active, there] = [unchanged(sql, person, loaded.active), unchanged(sql, project, loaded.project)]
    yield* fence(sql, active, there, added(row))
    return accessOf(row, yield* filed(row, ["sponsor", "administrator"]))
  })
})
