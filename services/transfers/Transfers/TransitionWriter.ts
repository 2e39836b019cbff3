/**
 * Writes transitions: the transfer's row under its version, the domain's fence, timers, audit, mails, notices for both
 * sides and the message of the stream TRANSFERS. The fence's value is the message's position in the order of its
 * domain, so each transition raises the fence once.
 */
import { Array, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { CommandId, DomainId } from "../../../schemas/BrandedIds.ts"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { TransferMessage } from "../../../schemas/bus/TransferMessage.ts"
import { Notifications, type Reach, type Reachable } from "../../notifications/Notifications.ts"
import type { Notice } from "../../notifications/Notice.ts"
import { Audit, type AuditEntry } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { raised } from "../../platform/database/FencedWrite.ts"
import type { Conflict, Fence } from "../../platform/database/UnitOfWork.ts"
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
  /** The loaded transfer; null for a new one. */
  readonly before: Stored | null
  readonly after: Transition
  /** `account:<id>`, or `system` for the clock and the directory. */
  readonly actor: string
  readonly commandId: CommandId
  /** The domain's revision as loaded; null if only the row is locked. */
  readonly revision: bigint | null
  readonly tokens?: Tokens
  /** Default: empty. */
  readonly circumstances?: Partial<Circumstances>
  readonly now: number
}

/** A notice that is still to be written, and its account's addresses. */
export interface UnwrittenNotice {
  readonly notice: Notice
  readonly to: Reachable | undefined
}

/** A change for a fenced write, with the facts that were loaded for it. */
export interface FencedChange extends Change {
  readonly revision: bigint
  /** The parties' addresses. */
  readonly reach: Reach
  /** The change that ends the domain's live transfer; written before this one. */
  readonly ended?: Change | null
  /** The move of the domain, if the change completes the transfer. */
  readonly moving?: Moving | null
}

/** A change with an event. */
interface Made extends Change {
  readonly event: TransferEvent
  readonly state: TransferState
  readonly circumstances: Circumstances
}

/** The audit records of both sides. */
const recordsOf = ({ actor, event, state }: Made): ReadonlyArray<AuditEntry> =>
  ([["source", state.sourceUserId], ["target", state.targetUserId]] as const).map(([side, accountId]) => ({
    action: `domain-transfer.${event}`,
    actor,
    subject: `account:${accountId}`,
    outcome: "done",
    // One leaf for the decision, whose record names the transfer.
    decision: side === "source",
    details: { transfer_id: state.id, domain_id: state.domainId, side, status: state.status },
  }))

/** The message on TRANSFERS: ids, states and times; no address, name or note. */
const messageOf = (state: TransferState, event: TransferMessage["event"], now: number): TransferMessage => {
  const { note: _, source_label: __, target_email: ___, ...shown } = viewOf(state, now)
  return { ...shown, status: state.status, event, forced: state.forced, at: new Date(now).toISOString() }
}

export class TransitionWriter extends Context.Service<TransitionWriter, {
  /**
   * Writes transitions, at most one per domain, in the current transaction, and returns their notices for `tell`. Fails
   * with Conflict if a row or its domain has changed since it was loaded.
   */
  readonly write: (
    ...changes: ReadonlyArray<Change>
  ) => Effect.Effect<ReadonlyArray<UnwrittenNotice>, SqlError.SqlError | Conflict>
  /**
   * The same for one change by a fenced write: the last fences (domain, transfers, credentials), and an effect that
   * adds everything else, with the notices.
   */
  readonly fenced: (change: FencedChange) => {
    readonly fences: ReadonlyArray<Fence>
    readonly gather: Effect.Effect<void, SqlError.SqlError>
  }
  /** Writes notices, as the last step of the current transaction: inboxes are locked after all other rows. */
  readonly tell: (notices: ReadonlyArray<UnwrittenNotice>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/transfers/Transfers/TransitionWriter") {
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

      /** Writes everything beside the rows and notices; `seqs`: the domains' new revisions. */
      const record = Effect.fnUntraced(function* (
        made: ReadonlyArray<Made>,
        seqs: ReadonlyMap<DomainId, bigint>,
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

      const tell = (notices: ReadonlyArray<UnwrittenNotice>) =>
        notifications.tell(
          new Map(notices.flatMap(({ notice, to }) => to === undefined ? [] : [[notice.accountId, to] as const])),
          notices.map(({ notice }) => notice),
        )

      return TransitionWriter.of({ write, fenced, tell })
    }),
  )
}
