/**
 * Own messages of a stream (Shared Signals Framework 1.0, 8.1.4.1 and 8.1.5): verification, and the notice that the
 * transmitter changed the stream's status. They are signed before they are stored, outside any transaction, and have no
 * position in the project's history. A verification waits until the stream has reached the head that the history had
 * when it was requested; `stream-updated` waits for nothing.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { WakeUps } from "../../platform/messaging/WakeUps.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { audienceOf, lifecycleIssuer } from "../../lifecycle/EventSigner.ts"
import { lifecycleTopic } from "../../lifecycle/EventLog.ts"
import { SigningKeys } from "../../lifecycle/SigningKeys.ts"

export type OwnKind = "verification" | "stream-updated"

/** The event type of the Shared Signals Framework. */
export const ownEventType = (kind: OwnKind): string => `https://schemas.openid.net/secevent/ssf/event-type/${kind}`

/** A message that is not stored yet. */
export interface Signed {
  /** Its `jti`. */
  readonly id: string
  readonly kid: string
  readonly message: string
}

/** Undelivered verifications that a stream keeps; older ones are deleted. */
const waiting = 100

export const ownMessages = Effect.fnUntraced(function* (publicUrl: URL) {
  const { sql } = yield* Database
  const wakeUps = yield* WakeUps
  const ids = yield* Ids
  const keys = yield* SigningKeys
  const issuer = lifecycleIssuer(publicUrl)

  /** The project that a stream serves; null where there is no such stream. */
  const projectOf = (streamId: string) =>
    Effect.map(
      sql<{ project_id: ProjectId }>`select project_id from lifecycle_streams where id = ${streamId}::uuid`,
      ([row]) => row?.project_id ?? null,
    )

  /** Signs one message; never in a transaction. */
  const sign = Effect.fnUntraced(function* (
    streamId: string,
    projectId: ProjectId,
    kind: OwnKind,
    event: Readonly<Record<string, string>>,
  ) {
    const signer = yield* keys.signerOf(projectId)
    const id = yield* ids.next
    const claims = {
      iss: issuer,
      jti: id,
      iat: Math.floor((yield* Clock.currentTimeMillis) / 1000),
      aud: audienceOf(projectId),
      sub_id: { format: "opaque", id: streamId },
      events: { [ownEventType(kind)]: event },
    }
    const message = yield* Effect.promise(() => signer.sign("secevent+jwt", JSON.stringify(claims)))
    return { id, kid: signer.kid, message } satisfies Signed
  })

  /**
   * Locks the key of a signed message, as the first step of the transaction that stores it; false where the key was
   * reported as stolen meanwhile, and the message has to be signed anew.
   */
  const isSound = ({ kid }: Signed) => keys.holdUsable([kid])

  /** One attempt to queue a verification; returns whether nothing is left to do. */
  const queue = Effect.fnUntraced(function* (streamId: string, state: string | null) {
    const projectId = yield* projectOf(streamId)
    if (projectId === null) return true
    const signed = yield* sign(streamId, projectId, "verification", state === null ? {} : { state })
    const { id, message } = signed
    const now = new Date(yield* Clock.currentTimeMillis)
    return yield* sql.withTransaction(Effect.gen(function* () {
      if (!(yield* isSound(signed))) return false
      yield* sql`
        insert into lifecycle_stream_messages (id, stream_id, kind, message, after_epoch, after_position, created_at)
        select ${id}::uuid, t.id, 'verification', ${message}, coalesce(h.epoch, t.epoch), coalesce(h.position, 0), ${now}
        from lifecycle_streams t left join lifecycle_heads h on h.project_id = t.project_id
        where t.id = ${streamId}::uuid and t.status <> 'disabled'
        for key share of t`
      yield* sql`
        delete from lifecycle_stream_messages where id in (
          select id from lifecycle_stream_messages
          where stream_id = ${streamId}::uuid and kind = 'verification' and delivered_at is null
          order by created_at desc, id desc offset ${waiting})`
      yield* sql.afterCommit(wakeUps.notify(lifecycleTopic, [projectId]))
      return true
    }))
  })

  /**
   * Queues a verification behind all events of the project so far; `state` is the receiver's, null for a verification
   * that the receiver did not request. Does nothing for a stream that is disabled or gone.
   */
  const addVerification = Effect.fn("Streams.addVerification")(function* (streamId: string, state: string | null) {
    while (!(yield* queue(streamId, state)));
  })

  return { addVerification, isSound, projectOf, sign }
})
