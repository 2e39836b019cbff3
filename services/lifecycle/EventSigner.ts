/**
 * Signs lifecycle events: each becomes one security event token (RFC 8417), signed once after its commit, outside any
 * transaction, stored, and published on `lifecycle.v1.<project_id>.<kind>` in the order of positions. Where two
 * processes sign the same event, the first stored bytes are the message everywhere. The key depends on the event's
 * position only (SigningKeys); where that key was stolen the event waits until the project has the next key.
 *
 * Killed before the store commits: nothing is stored, and the event is signed again. Killed after it: the relay
 * publishes.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { Subject } from "../../schemas/bus/Subject.ts"
import { encodeCursor } from "../../schemas/identity/Cursor.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../schemas/identity/LifecycleEventKinds.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { within } from "../platform/observability/Traces.ts"
import { measureSigned, signerMetrics } from "./LatencyMetrics.ts"
import { lifecycleTopic } from "./EventLog.ts"
import { SigningKeys } from "./SigningKeys.ts"

const batch = 200
const atOnce = 8

/** `iss` of everything that is signed here. */
export const lifecycleIssuer = (publicUrl: URL): string => new URL("/lifecycle", publicUrl).href

/** `aud` of a project's messages: one for all of its receivers. */
export const audienceOf = (projectId: string): string => `urn:bailiwick:project:${projectId}`

/** `aud` of what is signed for the readers of an institution's decisions. */
export const institutionAudience = (institutionId: string): string => `urn:bailiwick:institution:${institutionId}`

/** A sequence number that grows over epochs and orders a project's messages on the broker. */
export const seqOf = (epoch: number, position: number | bigint): bigint => (BigInt(epoch) << 44n) + BigInt(position)

interface EventRow {
  readonly id: string
  readonly project_id: ProjectId
  readonly epoch: number
  readonly position: bigint
  readonly digest: string
  readonly prev_digest: string
  readonly kind: LifecycleEventKind
  readonly txn: string
  readonly sub_id: object
  readonly payload: object
  readonly created_at: Date
  readonly traceparent: string | null
  /** The position up to which its project's history was signed when this row was read. */
  readonly from_epoch: number
  readonly from_position: bigint
}

interface Signed {
  readonly event: EventRow
  readonly kid: string
  readonly message: string
}

/** The claims of an event's token. */
export const claimsOf = (event: EventRow, issuer: string) => ({
  iss: issuer,
  jti: event.id,
  iat: Math.floor(event.created_at.getTime() / 1000),
  aud: audienceOf(event.project_id),
  txn: event.txn,
  sub_id: event.sub_id,
  events: {
    [lifecycleEventKinds[event.kind].uri]: {
      ...event.payload,
      lifecycle: {
        epoch: event.epoch,
        position: Number(event.position),
        // A receiver of pushes has no page that names a cursor, and an acknowledgement needs a cursor.
        cursor: encodeCursor({ epoch: event.epoch, position: Number(event.position) }),
        digest: event.digest,
        prev_digest: event.prev_digest,
      },
    },
  },
})

export class EventSigner extends Context.Service<EventSigner, {
  /** Signs up to 200 unsigned events, in order; returns whether there may be more. */
  readonly signDue: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/EventSigner") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      EventSigner,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const wakeUps = yield* WakeUps
        const keys = yield* SigningKeys
        const outbox = yield* Outbox
        const issuer = lifecycleIssuer(publicUrl)
        yield* signerMetrics

        // Finds all projects that are behind before it takes fifty of them: with the limit inside, the planner looks up
        // each project by key, which reads blocks for every project although two hundred projects lie in one block.
        const unsigned = sql<EventRow>`
          with behind as materialized (
            select h.project_id, coalesce(s.epoch, 0) as epoch, coalesce(s.position, 0) as position
            from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
            where (s.project_id is null or (h.epoch, h.position) > (s.epoch, s.position))
              -- The head of a new epoch without events is ahead of the signed position, but there is nothing to sign.
              and (h.position > 0 or exists (select from lifecycle_events e
                where e.project_id = h.project_id
                  and (e.epoch, e.position) > (coalesce(s.epoch, 0), coalesce(s.position, 0))))
          )
          select e.id::text as id, e.project_id, e.epoch, e.position, e.digest, e.prev_digest, e.kind,
            e.txn::text as txn, e.sub_id, e.payload, e.created_at, e.traceparent,
            behind.epoch as from_epoch, behind.position as from_position
          from (select * from behind limit 50) behind
          cross join lateral (
            select * from lifecycle_events e
            where e.project_id = behind.project_id and (e.epoch, e.position) > (behind.epoch, behind.position)
            order by e.epoch, e.position limit ${batch}
          ) e
          limit ${batch}`

        /** Stores signed messages; returns false, and stores none, where one of their keys was stolen meanwhile. */
        const store = Effect.fnUntraced(function* (signed: ReadonlyArray<Signed>) {
          if (!(yield* keys.holdUsable([...new Set(signed.map(({ kid }) => kid))]))) return false
          const now = new Date(yield* Clock.currentTimeMillis)
          const rows = signed.map(({ event, kid, message }) => ({
            event_id: event.id,
            project_id: event.project_id,
            epoch: event.epoch,
            position: String(event.position),
            kid,
            message,
            subject: `lifecycle.v1.${Subject.token(event.project_id)}.${event.kind}`,
            seq: String(seqOf(event.epoch, event.position)),
            decided_at: event.created_at.toISOString(),
            traceparent: event.traceparent,
            from_epoch: event.from_epoch,
            from_position: String(event.from_position),
          }))
          yield* sql`
            with signed as (
              select * from jsonb_to_recordset(${sql.json(rows)}) r(
                event_id uuid, project_id text, epoch integer, position bigint, kid text, message text, subject text,
                seq bigint, decided_at timestamptz, traceparent text, from_epoch integer, from_position bigint)
            ), kept as (
              insert into lifecycle_messages (event_id, project_id, epoch, position, kid, message, signed_at, decided_at,
                traceparent)
              select event_id, project_id, epoch, position, kid, message, ${now}, decided_at, traceparent
              from signed
              on conflict do nothing returning event_id
            ), queued as (
              insert into outbox (id, stream, subject, payload, headers, msg_id, aggregate_id, seq, created_at, not_before)
              select event_id, 'LIFECYCLE', subject, message, jsonb_strip_nulls(jsonb_build_object(
                  'Content-Type', 'application/secevent+jwt', 'traceparent', traceparent)),
                event_id::text, project_id, seq, ${now}, ${now}
              from signed where event_id in (select event_id from kept)
              -- Signed again because the key of the first signature was stolen.
              on conflict (id) do update set payload = excluded.payload where outbox.published_at is null
            )
            insert into lifecycle_signed as t (project_id, epoch, position)
            select distinct on (project_id) project_id, epoch, position from signed
            order by project_id, epoch desc, position desc
            on conflict (project_id) do update set epoch = excluded.epoch, position = excluded.position
            where (excluded.epoch, excluded.position) > (t.epoch, t.position)
              -- Messages deleted meanwhile for a stolen key (Keys/Moving) lie before these: sign those first.
              and exists (select from signed s where s.project_id = t.project_id
                and (t.epoch, t.position) >= (s.from_epoch, s.from_position))`
          yield* outbox.notifyAfterCommit
          yield* sql.afterCommit(
            wakeUps.notify(lifecycleTopic, [...new Set(signed.map(({ event }) => event.project_id))]),
          )
          return true
        }, sql.withTransaction)

        const signDue = Effect.gen(function* () {
          const events = yield* unsigned
          if (events.length === 0) return false
          const signers = yield* keys.signersOf(events)
          const due = events.flatMap((event, i) => {
            const signer = signers[i] ?? null
            return signer === null ? [] : [{ event, signer }]
          })
          if (due.length === 0) return false
          const signed = yield* Effect.forEach(
            due,
            ({ event, signer }) =>
              Effect.promise(async (): Promise<Signed> => {
                const message = await signer.sign("secevent+jwt", JSON.stringify(claimsOf(event, issuer)))
                return { event, kid: signer.kid, message }
              }).pipe(within("lifecycle.sign", event.traceparent, { "lifecycle.event_id": event.id })),
            { concurrency: atOnce },
          )
          yield* faultPoint("lifecycle.signed")
          const stored = yield* store(signed)
          if (stored) yield* measureSigned(signed.map(({ event }) => event.created_at), yield* Clock.currentTimeMillis)
          yield* faultPoint("lifecycle.stored")
          return stored && events.length === batch
        }).pipe(Effect.withSpan("Messages.signDue"))

        return EventSigner.of({ signDue })
      }),
    )
}
