/**
 * Stores the subjects that a receiver added to or removed from its stream: only what differs from the default, which is
 * that all are included. A subject that is added where no subject was removed leaves no row.
 */
import { Clock, Effect } from "effect"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { SubjectLimit } from "../../../schemas/problems/StreamProblems.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"
import { Database } from "../../platform/database/Database.ts"
import type { StreamRow } from "./Rows.ts"

/** `most`: subjects that a receiver may have added to or removed from a stream. */
export const saidSubjects = Effect.fnUntraced(function* (most: number) {
  const { sql } = yield* Database

  /** Adds or removes a subject of a locked stream; returns whether anything changed. */
  const say = Effect.fnUntraced(function* ({ id, subjects }: StreamRow, subject: Subject, included: boolean) {
    const digest = digestOf(subject)
    const others = subjects.filter((one) => digestOf(one.subject) !== digest)
    const forgotten = included && others.every((one) => one.included)
    if (forgotten && subjects.length === 0) return false
    if (!forgotten && others.length >= most) {
      return yield* new SubjectLimit({ detail: `A stream may have ${most} subjects added or removed.` })
    }
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      delete from lifecycle_stream_subjects
      where stream_id = ${id}::uuid and (${forgotten}::boolean or subject_digest = ${digest})`
    if (!forgotten) {
      yield* sql`
        insert into lifecycle_stream_subjects (stream_id, subject_digest, subject, included, created_at)
        values (${id}::uuid, ${digest}, ${sql.json(subject)}, ${included}, ${now})`
    }
    yield* sql`update lifecycle_streams set version = version + 1, updated_at = ${now} where id = ${id}::uuid`
    return true
  })

  return { say }
})
