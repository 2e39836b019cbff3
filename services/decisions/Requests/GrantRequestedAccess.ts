/** Grants the Access of an approved request, or moves the end of the Access that the person has to a later time. */
import { Clock, Effect } from "effect"
import { AccessId, type ProjectId } from "../../../schemas/BrandedIds.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { aggregateOf, isRevoking, newEnds, presentEnd } from "../../access/AccessEndRows.ts"
import { lengthened, timersOf } from "../../access/AccessTerm.ts"
import { AccessVersions } from "../../access/AccessVersions.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, one, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { write } from "../../platform/database/UnitOfWork.ts"
import { Ids } from "../../platform/Ids.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { activeIn, activeRow, notActive } from "./ActivePerson.ts"
import { live } from "./AskAccess.ts"
import { namesOf } from "./Filing.ts"
import { endIn } from "./RequestViews.ts"

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
  /** The Access that the person has, under any of its ids; of several the one that ends last. */
  readonly held: { readonly id: AccessId; readonly ends_at: string | null; readonly revoking: boolean } | null
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

/** What was signed is carried out: the request is not turned against a revocation that only waits for its timer. */
const revokedSoon = Effect.suspend(() =>
  Effect.fail(
    new InvalidState({
      state: "revoking",
      allowed: ["active", "revoked"],
      detail:
        "The Access that the person has is revoked in a moment, as was signed. Sign again then: it is granted anew.",
    }),
  )
)

export const grantingAccess = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const timers = yield* Timers
  const versions = yield* AccessVersions

  const projectRow = (projectId: ProjectId): Question => ({
    rows: sql`select rollout, state from projects where id = ${projectId} and not removed`,
    lock: sql`for share`,
  })

  const evidence = newEnds(sql)

  /** Writes the evidence of a new end, and its timer. */
  const kept = Effect.fnUntraced(
    function* (accessId: AccessId, endsAt: number | null, { approvedBy, request }: Decision) {
      yield* write(sql, evidence, [{
        id: yield* ids.next,
        access_id: accessId,
        ends_at: endsAt === null ? null : new Date(endsAt).toISOString(),
        set_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
        made_by: request.author,
        approved_by: approvedBy,
        reason: request.reason,
        request_id: request.id,
        access_version: null,
      }])
      yield* timers.set(aggregateOf(accessId), timersOf({ active: true, endsAt }))
    },
  )

  /** Moves the end of an Access to the time that was asked for, where it is later. */
  const move = Effect.fnUntraced(
    function* (held: NonNullable<Loaded["held"]>, asked: string | null, decision: Decision) {
      if (held.revoking) return yield* revokedSoon
      const before = held.ends_at === null ? null : Date.parse(held.ends_at)
      const { endsAt } = lengthened({ active: true, endsAt: before }, asked === null ? null : Date.parse(asked))
      if (endsAt === before) return
      yield* fence(
        sql,
        one((earlier) =>
          sql`update access set ends_at = ${endsAt === null ? null : new Date(endsAt)}, ends_version = null,
            ends_before = null, revision = revision + 1
          where id = ${held.id} and state = 'active' and not removed and not ${sql.literal(isRevoking)}
            and ${sql.literal(presentEnd)} is not distinct from ${
            before === null ? null : new Date(before)
          } and ${earlier} returning 1`
        ),
      )
      yield* kept(held.id, endsAt, decision)
    },
  )

  /**
   * Writes the person's row, so that of two concurrent grants for one person the second sees the first.
   */
  return Effect.fnUntraced(function* (decision: Decision) {
    const { approvedBy, request } = decision
    const { author, institution_id: institutionId, project_id } = request
    const projectId = project_id!
    const [person, project] = [activeRow(sql, author), projectRow(projectId)]
    const loaded = yield* load<Loaded>(
      sql,
      sql`select ${answerTo(sql, person)} as active, ${answerTo(sql, project)} as project,
        (select xmin::text from people where id = canonical_person(${author})) as written, (
          select json_build_object('id', id, 'ends_at', ${sql.literal(presentEnd)},
            'revoking', ${sql.literal(isRevoking)}) from access
          where project_id = ${projectId} and state = 'active' and not removed
            and person_id in ${namesOf(sql, sql`canonical_person(${author})`)}
          order by ${sql.literal(presentEnd)} desc nulls first, id limit 1) as held`,
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
    const asked = endIn(request)
    if (loaded.held !== null) {
      yield* move(loaded.held, asked, decision)
      return { state: "approved", resultId: loaded.held.id } as const
    }
    const accessId = AccessId.make(yield* ids.next)
    const to = { accessId, institutionId: institutionId!, projectId, personId: holder.id, role: accessRole } as const
    const endsAt = asked === null ? null : new Date(asked)
    if (endsAt !== null) yield* kept(accessId, endsAt.getTime(), decision)
    const { eventId } = yield* versions.grant({ ...to, state: "active", madeBy: author, approvedBy, endsAt }, holder)
    return { state: "approved", resultId: accessId, eventId } as const
  })
})
