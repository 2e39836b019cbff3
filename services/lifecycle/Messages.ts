/**
 * Signed messages: each lifecycle event becomes one security event token (RFC 8417), signed once after its commit, outside
 * any transaction, stored, and published on `lifecycle.v1.<project_id>.<kind>` in the order of positions. Whoever signs the
 * same event at the same time loses: the first stored bytes are the message, everywhere.
 *
 * Killed before the store commits: nothing is stored, the event is signed again. After it: the relay publishes.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../schemas/bus/Subject.ts"
import { type FactKind, factKinds } from "../../schemas/identity/Facts.ts"
import { Bells } from "../platform/Bells.ts"
import { Database } from "../platform/Database.ts"
import { faultPoint } from "../platform/Faults.ts"
import { Outbox } from "../platform/Outbox.ts"
import { lifecycleTopic } from "./Positions.ts"
import { type Signer, SigningKeys } from "./SigningKeys.ts"

const batch = 200
const atOnce = 8

/** `iss` of everything that is signed here. */
export const lifecycleIssuer = (publicUrl: URL): string => new URL("/lifecycle", publicUrl).href

/** `aud` of a project's messages: one for all of its receivers. */
export const audienceOf = (projectId: string): string => `urn:bailiwick:project:${projectId}`

/** A sequence number that grows over epochs: what orders a project's messages on the bus. */
export const seqOf = (epoch: number, position: number | bigint): bigint => (BigInt(epoch) << 44n) + BigInt(position)

interface EventRow {
  readonly id: string
  readonly project_id: string
  readonly epoch: number
  readonly position: bigint
  readonly digest: string
  readonly prev_digest: string
  readonly kind: FactKind
  readonly txn: string
  readonly sub_id: object
  readonly payload: object
  readonly created_at: Date
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
    [factKinds[event.kind].uri]: {
      ...event.payload,
      lifecycle: {
        epoch: event.epoch,
        position: Number(event.position),
        digest: event.digest,
        prev_digest: event.prev_digest,
      },
    },
  },
})

export class Messages extends Context.Service<Messages, {
  /** Signs what is unsigned, in order, some 200 events; gives whether there may be more. */
  readonly signDue: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/Messages") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      Messages,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const bells = yield* Bells
        const keys = yield* SigningKeys
        const outbox = yield* Outbox
        const issuer = lifecycleIssuer(publicUrl)

        const unsigned = sql<EventRow>`
          select e.id::text as id, e.project_id, e.epoch, e.position, e.digest, e.prev_digest, e.kind,
            e.txn::text as txn, e.sub_id, e.payload, e.created_at
          from (
            select h.project_id, coalesce(s.epoch, 0) as epoch, coalesce(s.position, 0) as position
            from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
            where s.project_id is null or (h.epoch, h.position) > (s.epoch, s.position)
            limit 50
          ) behind
          cross join lateral (
            select * from lifecycle_events e
            where e.project_id = behind.project_id and (e.epoch, e.position) > (behind.epoch, behind.position)
            order by e.epoch, e.position limit ${batch}
          ) e
          limit ${batch}`

        const store = Effect.fnUntraced(function* (
          signer: Signer,
          events: ReadonlyArray<EventRow>,
          messages: ReadonlyArray<string>,
        ) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const rows = events.map((event, i) => ({
            event_id: event.id,
            project_id: event.project_id,
            epoch: event.epoch,
            position: String(event.position),
            message: messages[i]!,
            subject: `lifecycle.v1.${Subject.token(event.project_id)}.${event.kind}`,
            seq: String(seqOf(event.epoch, event.position)),
          }))
          yield* sql`
            with signed as (
              select * from jsonb_to_recordset(${sql.json(rows)}) r(
                event_id uuid, project_id text, epoch integer, position bigint, message text, subject text, seq bigint)
            ), kept as (
              insert into lifecycle_messages (event_id, project_id, epoch, position, kid, message, signed_at)
              select event_id, project_id, epoch, position, ${signer.kid}, message, ${now} from signed
              on conflict do nothing returning event_id
            ), queued as (
              insert into outbox (id, stream, subject, payload, headers, msg_id, aggregate_id, seq, created_at, not_before)
              select event_id, 'LIFECYCLE', subject, message, '{"Content-Type": "application/secevent+jwt"}', event_id::text,
                project_id, seq, ${now}, ${now}
              from signed where event_id in (select event_id from kept)
            )
            insert into lifecycle_signed as t (project_id, epoch, position)
            select distinct on (project_id) project_id, epoch, position from signed
            order by project_id, epoch desc, position desc
            on conflict (project_id) do update set epoch = excluded.epoch, position = excluded.position
            where (excluded.epoch, excluded.position) > (t.epoch, t.position)`
          yield* outbox.ringAfterCommit
          yield* sql.afterCommit(bells.ring(lifecycleTopic))
        }, sql.withTransaction)

        const signDue = Effect.gen(function* () {
          const events = yield* unsigned
          if (events.length === 0) return false
          const signer = yield* keys.signer
          const messages = yield* Effect.forEach(
            events,
            (event) => Effect.promise(() => signer.sign("secevent+jwt", JSON.stringify(claimsOf(event, issuer)))),
            { concurrency: atOnce },
          )
          yield* faultPoint("lifecycle.signed")
          yield* store(signer, events, messages)
          yield* faultPoint("lifecycle.stored")
          return events.length === batch
        }).pipe(Effect.withSpan("Messages.signDue"))

        return Messages.of({ signDue })
      }),
    )
}
