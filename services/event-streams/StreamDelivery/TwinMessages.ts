/**
 * Gives a stream twins (RFC 9967) in place of the events whose own type its receiver did not ask for. A twin is made
 * from the event's stored message when it is delivered and is kept nowhere: a repetition has the same claims, and after
 * a change of keys another signature. It is signed by the key that signs now, like what is of no position.
 */
import { Effect } from "effect"
import { decodeJwt } from "jose"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { Database } from "../../platform/database/Database.ts"
import { SigningKeys } from "../../lifecycle/SigningKeys.ts"
import { type SourceClaims, twinOf } from "../Streams/ScimTwin.ts"
import { deliversTwin, deliversTwins } from "../Streams/StreamSubjects.ts"
import type { RecordedEvent } from "./Reader.ts"
import type { StreamRecord } from "./StreamRecord.ts"

/** Twins of one page: each is a signature that its reader waits for. */
export const twinsAtOnce = 100
const signedAtOnce = 8

export const twinMessages = Effect.gen(function* () {
  const { sql } = yield* Database
  const keys = yield* SigningKeys

  /** Messages as this stream delivers them. */
  return Effect.fnUntraced(function* (served: StreamRecord, messages: ReadonlyArray<RecordedEvent>) {
    if (messages.length === 0 || !deliversTwins(served.events_requested)) return messages
    const rows = yield* sql<{ id: string; kind: LifecycleEventKind; person_id: string | null }>`
      select id::text as id, kind, person_id from lifecycle_events where id = any(${
      messages.map(({ id }) => id)
    }::uuid[])`
    const known = new Map(rows.map((row) => [row.id, row]))
    const { sign } = yield* keys.signerOf(served.project_id)
    return yield* Effect.forEach(messages, (recorded) => {
      const event = known.get(recorded.id)
      const twin = event === undefined || !deliversTwin(served.events_requested, event.kind)
        ? null
        : twinOf(decodeJwt<SourceClaims>(recorded.message) as SourceClaims, event.kind, event.person_id)
      return twin === null ? Effect.succeed(recorded) : Effect.map(
        Effect.promise(() => sign("secevent+jwt", JSON.stringify(twin))),
        (message): RecordedEvent => ({ ...recorded, id: twin.jti, message }),
      )
    }, { concurrency: signedAtOnce })
  })
})
