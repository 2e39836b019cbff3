/**
 * Recovers a held installation (docs/recovery.md): takes in again what came in during the lost time, makes and mails
 * links anew, revokes again what was revoked, and then opens the installation.
 *
 * The installation opens only when all of the lost history was read: while the broker is away, or a stream is not the
 * one to which this database had published, or messages are missing or cannot be verified, it stays held until an
 * operator opens it (`cli installation open`). Killed anywhere: recovery begins again; every step may be repeated.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { invitations } from "../decisions/Invitations.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Bus, type BusError } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import {
  forgetSupplied,
  type HeldReason,
  type InstallationRow,
  type MissingMessages,
  readInstallation,
} from "../platform/database/Installation.ts"
import {
  lostTransfers,
  lostTransfersLayer,
  type PublishedTransfer,
  publishedTransfer,
} from "../transfers/TransferRecovery.ts"
import { ensureEpoch, settleEpoch } from "../lifecycle/Epochs.ts"
import { lostDecisions } from "./LostDecisions.ts"
import { lostHistory } from "./LostHistory.ts"
import { suppliedHistory } from "./SuppliedHistory.ts"
import { missingMessages, tellingStreams } from "./MissingMessages.ts"
import { KeyRotation } from "../lifecycle/KeyRotation.ts"
import { reapplying } from "./ReapplyLostHistory.ts"
import { cliCommand } from "../platform/CommandSpelling.ts"

/** Streams from which the intake reads the lost time again. */
const taken = ["DIRECTORY_IN", "EVENTS"] as const

const leaseMillis = 30_000

/** Gaps of missing messages that are named at most. */
const namedAtMost = 100

const keyOf = (gaps: ReadonlyArray<MissingMessages>) =>
  gaps.map(({ epoch, first, last, project_id, stream }) => [stream, first, last, project_id, epoch].join(" ")).join(
    "\n",
  )

type Failure = SqlError.SqlError | BusError | DependencyUnavailable

export class Recovery extends Context.Service<Recovery, {
  /**
   * Recovers as far as possible now; returns whether the installation is open. One process works, the others get false.
   */
  readonly advance: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/recovery/Recovery") {
  static readonly layer = Layer.effect(
    Recovery,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const bus = yield* Bus
      const decisions = yield* lostDecisions
      const history = yield* lostHistory
      const invited = yield* invitations
      const keys = yield* KeyRotation
      const missing = yield* missingMessages
      const supplied = yield* suppliedHistory
      const transfers = yield* lostTransfers
      const { hold, reapply } = yield* reapplying
      const processId = crypto.randomUUID()
      // What was supplied and the gaps that this process found last: the streams are read again once these change.
      let gapsBefore: string | null = null

      const stayHeld = (because: HeldReason) =>
        Effect.as(
          sql`update installation set held_reason = ${because} where state = 'held' and held_reason <> ${because}`,
          false,
        )

      const done = Effect.fnUntraced(function* (
        step: "intake_rewound_at" | "tokens_renewed_at" | "reapplied_at",
        epoch: number,
      ) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`update installation set ${sql(step)} = ${now} where epoch = ${epoch}`
      })

      const recorded = (action: string, epoch: number, details: Readonly<Record<string, string | number>>) =>
        audit.append({
          action,
          actor: "system",
          subject: `installation:${epoch}`,
          outcome: "done",
          decision: true,
          details,
        })

      /**
       * Whether the stream is the one to which this database had published, or it had published nothing to that stream.
       */
      const knows = Effect.fnUntraced(function* (
        { streams }: InstallationRow,
        stream: typeof tellingStreams[number],
        since: number,
      ) {
        const { created } = yield* bus.mark(stream)
        const known = streams[stream]
        if (known !== undefined) return known === created
        if (Date.parse(created) <= since) return true
        const sent = yield* sql`select from outbox where stream = ${stream} and published_at is not null limit 1`
        return sent.length === 0
      })

      /** Begins an epoch after `epoch`, which the lost history already used: two histories must not share an epoch. */
      const beginAfter = (epoch: number) =>
        sql.withTransaction(Effect.gen(function* () {
          yield* sql`update installation set restored_from = lost_since + interval '1 hour', epoch = ${epoch}`
          yield* settleEpoch(sql)
        }))

      const reapplyAll = Effect.fnUntraced(function* (found: InstallationRow, since: number) {
        const lost = yield* history.read(since, found)
        if (lost.epoch >= found.epoch) {
          yield* beginAfter(lost.epoch)
          return null
        }
        let reapplied = 0
        for (const change of lost.changes) {
          if (yield* reapply(change)) reapplied++
          yield* faultPoint("recovery.reapplied")
        }
        // Consumers must not believe what a thief signs. KeyRefused: the key is out of use already.
        for (const kid of lost.stolenKeys) {
          yield* keys.compromise(kid, "it was compromised before the database was put back").pipe(
            Effect.andThen(Effect.sync(() => void reapplied++)),
            Effect.catchTag("KeyRefused", () => Effect.void),
          )
        }
        // Consumers may have followed a switch of keys in the lost time, and believe the old key no more.
        if (yield* keys.resume([...lost.keys])) reapplied++
        for (const projectId of lost.failedRollouts) if (yield* hold(projectId)) reapplied++
        const decided = yield* decisions.read(since, found)
        for (const decision of decided.decisions) {
          if (yield* decisions.reapply(decision)) reapplied++
          yield* faultPoint("recovery.reapplied")
        }
        const published = new Map<string, PublishedTransfer>()
        let { unreadable } = decided
        yield* supplied.read(
          "TRANSFERS",
          { sinceMillis: since, streams: found.streams },
          (messages) =>
            Effect.sync(() => {
              for (const { data } of messages) {
                const transfer = publishedTransfer(new TextDecoder().decode(data))
                if (transfer === null) unreadable++
                else published.set(transfer.id, transfer)
              }
            }),
        )
        let unknown = 0
        for (const transfer of published.values()) {
          const became = yield* transfers.redecide(transfer)
          if (became === "redecided") reapplied++
          if (became !== "unknown") continue
          unknown++
          yield* audit.append({
            action: "recovery.transfer-unknown",
            actor: "system",
            subject: `domain:${transfer.domain_id}`,
            outcome: "failed",
            details: { transfer_id: transfer.id, status: transfer.status },
          })
        }
        const unverifiable = lost.unverifiable + unreadable
        yield* recorded("recovery.looked-back", found.epoch, {
          lost_events: lost.events,
          reapplied,
          unverifiable,
          unknown_transfers: unknown,
        })
        return { unverifiable, positions: lost.positions }
      })

      /** Keeps the installation held for messages that the broker lost, and names them. */
      const holdForGaps = Effect.fnUntraced(function* (found: InstallationRow, gaps: ReadonlyArray<MissingMessages>) {
        const { epoch, missing } = found
        const named = gaps.slice(0, namedAtMost)
        yield* sql`
          update installation set held_reason = 'messages_missing', missing = ${sql.json(named)}
          where epoch = ${epoch} and state = 'held'`
        if (keyOf(missing) === keyOf(named)) return false
        yield* audit.append(...named.map((gap) => ({
          action: "recovery.messages-missing",
          actor: "system" as const,
          subject: `installation:${epoch}`,
          outcome: "failed" as const,
          details: { ...gap },
        })))
        yield* Effect.logWarning(
          `epoch ${epoch}: messages are missing, in ${gaps.length} gaps: type "${cliCommand("installation show")}"`,
        )
        return false
      }, sql.withTransaction)

      const open = Effect.fnUntraced(function* (epoch: number) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const opened = yield* sql`
          update installation set state = 'open', held_since = null, held_reason = null, missing = '[]', opened_at = ${now}
          where epoch = ${epoch} and state = 'held' returning 1`
        if (opened.length === 0) return
        yield* forgetSupplied(sql)
        yield* recorded("installation.opened", epoch, {})
      }, sql.withTransaction)

      const recover = Effect.fnUntraced(function* (found: InstallationRow): Effect.fn.Return<boolean, Failure> {
        const { epoch } = found
        const since = (found.lost_since ?? found.held_since)!.getTime()
        if (found.intake_rewound_at === null) {
          for (const stream of taken) yield* bus.rewind(stream, since)
          yield* faultPoint("recovery.rewound")
          yield* sql.withTransaction(Effect.gen(function* () {
            yield* done("intake_rewound_at", epoch)
            yield* recorded("installation.held", epoch, {
              held_reason: found.held_reason!,
              lost_since: new Date(since).toISOString(),
            })
          }))
        }
        if (found.tokens_renewed_at === null) {
          yield* transfers.renewLinks
          yield* invited.renewLinks
          yield* done("tokens_renewed_at", epoch)
          yield* faultPoint("recovery.renewed")
        }
        for (const stream of tellingStreams) {
          if (!(yield* knows(found, stream, since))) return yield* stayHeld("stream_gone")
        }
        const streamGaps = yield* missing.ofStreams(found, since)
        const gapsNow = `${yield* supplied.version}\n${keyOf(streamGaps)}`
        if (found.held_reason === "messages_missing" && gapsBefore === gapsNow) return false
        // Revokes once at once, and once more when the intake has caught up: it may have brought back revoked rows.
        const waiting = yield* bus.unanswered("DIRECTORY_IN")
        if (found.reapplied_at !== null && waiting > 0) return yield* stayHeld("intake_behind")
        const seen = yield* reapplyAll(found, since)
        if (seen === null) return false
        if (seen.unverifiable > 0) return yield* stayHeld("unverifiable_messages")
        yield* done("reapplied_at", epoch)
        if (waiting > 0) return yield* stayHeld("intake_behind")
        const gaps = [...streamGaps, ...(yield* missing.ofProjects(seen.positions))]
        if (gaps.length > 0) {
          gapsBefore = gapsNow
          return yield* holdForGaps(found, gaps)
        }
        yield* open(epoch)
        yield* Effect.logWarning(
          `epoch ${epoch}: everything that was revoked in the lost time is revoked again; the installation is open`,
        )
        return true
      })

      /** Takes or renews the lease of the one process that recovers; returns whether this process has it. */
      const lease = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const taken = yield* sql`
          update installation set recovering = ${processId}::uuid, recovering_until = ${new Date(now + leaseMillis)}
          where state = 'held' and (recovering = ${processId}::uuid or coalesce(recovering_until < ${new Date(
          now,
        )}, true))
          returning 1`
        return taken.length === 1
      })
      // The lease is kept between calls of `advance`; the end of this process gives it back.
      yield* Effect.addFinalizer(() =>
        sql`update installation set recovering = null, recovering_until = null where recovering = ${processId}::uuid`
          .pipe(
            Effect.interruptible,
            Effect.timeout("2 seconds"),
            Effect.ignore,
          )
      )
      const renewing = Effect.sleep(leaseMillis / 3).pipe(Effect.andThen(lease), Effect.forever)

      const advance = Effect.gen(function* () {
        yield* ensureEpoch(sql)
        const found = yield* readInstallation(sql)
        if (found.state === "open") return true
        if (found.held_reason === "unverifiable_messages" || !(yield* lease)) return false
        return yield* Effect.raceFirst(recover(found), renewing).pipe(
          Effect.catchTags({
            BusError: ({ message }) =>
              Effect.andThen(
                // Logged once, however long the broker is away.
                found.held_reason === "event_bus_unavailable"
                  ? Effect.void
                  : Effect.logWarning(`recovery: the broker cannot be asked: ${message}`),
                stayHeld("event_bus_unavailable"),
              ),
            DependencyUnavailable: () => Effect.succeed(false),
          }),
        )
      }).pipe(Effect.withSpan("Recovery.advance"))

      return Recovery.of({ advance })
    }),
  ).pipe(Layer.provide(lostTransfersLayer))
}
