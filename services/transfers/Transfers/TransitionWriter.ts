/**
 * What is written of a transition: the row under its version and the domain's fence; timers, audit, mails, notices on both
 * sides and the message of the stream TRANSFERS with them. The message's place in its domain's order is the fence's value,
 * so each transition raises it once.
 */
import { Array, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../../schemas/bus/Subject.ts"
import { Notifications, type Reach, type Reachable } from "../../notifications/Notifications.ts"
import type { Notice } from "../../notifications/Notice.ts"
import { Audit, type AuditEntry } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Conflict, type Fence, raised } from "../../platform/database/FencedWrite.ts"
import { Mails } from "../../platform/mail/Mails.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { dropKeys } from "../DkimKeys.ts"
import { addressed, type Circumstances, mailedBy, mailsOf, plain } from "./Addressees.ts"
import type { TransferEvent, Transition } from "./TransferCommands.ts"
import { messagesOf, moved, type Moving, revoking } from "./DomainMove.ts"
import { noticesOf } from "./TransferNotices.ts"
import { rows, type Stored, type Tokens } from "./Rows.ts"
import { timersOf, type TransferState, viewOf } from "./TransferState.ts"

export interface Change {
  /** What was loaded under the lock; null: a new transfer. */
  readonly before: Stored | null
  readonly after: Transition
  /** `account:<id>`, or `system` for the clock and the directory. */
  readonly actor: string
  readonly commandId: string
  /** The domain's fence as it was loaded; null where only the row's lock is held. */
  readonly revision: bigint | null
  readonly tokens?: Tokens
  /** Empty where left out. */
  readonly circumstances?: Partial<Circumstances>
  readonly now: number
}

/** A notice that is still to be told, and where its account is reached. */
export interface Telling {
  readonly notice: Notice
  readonly to: Reachable | undefined
}

/** A change that stands on what was loaded, for a fenced write. */
export interface FencedChange extends Change {
  readonly revision: bigint
  /** Where its parties are reached. */
  readonly reach: Reach
  /** The domain's live transfer, which ends by it, before it. */
  readonly ended?: Change | null
  /** The domain moves with it. */
  readonly moving?: Moving | null
}

/** A change that changes something. */
interface Made extends Change {
  readonly event: TransferEvent
  readonly state: TransferState
  readonly circumstances: Circumstances
}

/** The audit of both sides. */
const recordsOf = ({ actor, event, state }: Made): ReadonlyArray<AuditEntry> =>
  ([["source", state.sourceUserId], ["target", state.targetUserId]] as const).map(([side, accountId]) => ({
    action: `domain-transfer.${event}`,
    actor,
    subject: `account:${accountId}`,
    outcome: "done",
    details: { transfer_id: state.id, domain_id: state.domainId, side, status: state.status },
  }))

/** A message of the stream: ids, states and times, no address, name or note. */
const messageOf = (state: TransferState, event: TransferEvent, now: number) => {
  const { note: _, source_label: __, target_email: ___, ...shown } = viewOf(state, now)
  return { ...shown, status: state.status, event, forced: state.forced, at: new Date(now).toISOString() }
}

export class TransitionWriter extends Context.Service<TransitionWriter, {
  /**
   * Writes transitions, at most one of a domain, in the current transaction, all but the notices, which it gives.
   * Conflict: a row or its domain is no longer as it was loaded.
   */
  readonly write: (
    ...changes: ReadonlyArray<Change>
  ) => Effect.Effect<ReadonlyArray<Telling>, SqlError.SqlError | Conflict>
  /**
   * The same of one change by a fenced write: its last fences (domain, transfers, credentials), and what gathers all else,
   * the notices too.
   */
  readonly fenced: (change: FencedChange) => {
    readonly fences: ReadonlyArray<Fence>
    readonly gather: Effect.Effect<void, SqlError.SqlError>
  }
  /** Tells all that was written in the current transaction, as its last step: inboxes are locked after all else. */
  readonly tell: (tellings: ReadonlyArray<Telling>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/transfers/Changes") {
  static readonly layer = Layer.effect(
    TransitionWriter,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const mails = yield* Mails
      const notifications = yield* Notifications
      const outbox = yield* Outbox
      const timers = yield* Timers
      const { fence, write: put } = rows(sql)

      const madeOf = (change: Change): ReadonlyArray<Made> => {
        const { events: [event], state } = change.after
        if (event === undefined) return []
        return [{ ...change, event, state, circumstances: { ...plain, ...change.circumstances } }]
      }

      const noticesFor = ({ circumstances, event, state }: Made) =>
        noticesOf(state, event, circumstances, mailedBy(event, state))

      /** All that goes with the rows but the notices; `seqs` are the domains' new fences. */
      const record = Effect.fnUntraced(function* (
        made: ReadonlyArray<Made>,
        seqs: ReadonlyMap<string, bigint>,
        reach: Reach,
      ) {
        yield* dropKeys(
          sql,
          made.flatMap(({ before, state }) => before?.state.rotateDkim && state.status === "reversed" ? [state] : []),
        )
        yield* timers.setAll(made.map(({ state }) => ({ aggregateId: state.id, timers: timersOf(state) })))
        yield* audit.append(...made.flatMap(recordsOf))
        yield* outbox.add(...made.flatMap(({ event, now, state }) =>
          event === "extended" ? [] : [{
            stream: "TRANSFERS" as const,
            subject: `transfers.v1.${Subject.token(state.domainId)}.${state.status}`,
            payload: JSON.stringify(messageOf(state, event, now)),
            order: { aggregateId: state.domainId, seq: seqs.get(state.domainId)! },
          }]
        ))
        yield* mails.add(
          ...made.flatMap(({ circumstances, event, state }) =>
            mailsOf(event, state, circumstances, (id) => reach.get(id)?.email)
          ),
        )
      })

      const write = Effect.fnUntraced(function* (...changes: ReadonlyArray<Change>) {
        const made = changes.flatMap(madeOf)
        if (!Array.isArrayNonEmpty(made)) return []
        const seqs = yield* put(Array.map(made, (change) => ({ tokens: {}, ...change })))
        const notices = made.flatMap(noticesFor)
        const reach = yield* notifications.reach([
          ...new Set([
            ...notices.map(({ accountId }) => accountId),
            ...made.flatMap(({ event, state }) => addressed(event, state)),
          ]),
        ])
        yield* record(made, seqs, reach)
        return notices.map((notice) => ({ notice, to: reach.get(notice.accountId) }))
      })

      const fenced = (change: FencedChange) => {
        const { ended, moving, now, reach, revision } = change
        const made = [...(ended ? madeOf(ended) : []), ...madeOf(change)]
        if (made.length === 0) return { fences: [], gather: Effect.void }
        const { domainId: id } = change.after.state
        return {
          fences: [
            moving
              ? moved(sql, moving, made.length, now)
              : raised(sql, "domains", "revision", { id, version: revision }),
            ...made.map((one) => fence({ tokens: {}, ...one })),
            ...(moving ? revoking(sql, moving, now) : []),
          ],
          gather: Effect.gen(function* () {
            for (const [i, one] of made.entries()) {
              yield* record([one], new Map([[id, revision + BigInt(i + 1)]]), reach)
            }
            if (moving) yield* outbox.add(...messagesOf(moving, made.length, now))
            yield* notifications.tell(reach, made.flatMap(noticesFor))
          }),
        }
      }

      const tell = (tellings: ReadonlyArray<Telling>) =>
        notifications.tell(
          new Map(tellings.flatMap(({ notice, to }) => to === undefined ? [] : [[notice.accountId, to] as const])),
          tellings.map(({ notice }) => notice),
        )

      return TransitionWriter.of({ write, fenced, tell })
    }),
  )
}
