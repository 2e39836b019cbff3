/**
 * What is written of a transition, all in the transaction that decided it: the row under its version, the domain's
 * fence, timers, audit and notices on both sides, the message of the stream TRANSFERS, mails. The message's place in its
 * domain's order is the fence's value, so each transition raises it once.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../../schemas/bus/Subject.ts"
import { type Notice, Notifications } from "../../notifications/Notifications.ts"
import { Audit } from "../../platform/Audit.ts"
import { Database } from "../../platform/Database.ts"
import { Mails } from "../../platform/Mails.ts"
import type { NewMail } from "../../platform/Mails.ts"
import { Outbox } from "../../platform/Outbox.ts"
import { Timers } from "../../platform/Timers.ts"
import { noticesOf } from "./notices.ts"
import { rows, type Stored, type Tokens } from "./Rows.ts"
import { timersOf, type TransferState, viewOf } from "./state.ts"
import { Conflict } from "./Transact.ts"
import type { TransferEvent, Transition } from "./commands.ts"

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
  readonly now: number
}

type To = "owner" | "initiator" | "recipient"

/** Who gets which mail. The stop email goes to the owner and, where different, the initiator. */
const lettersOf = (event: TransferEvent, { forced, initiatedBy, sourceUserId, status }: TransferState) => {
  const source: ReadonlyArray<To> = forced || initiatedBy === sourceUserId ? ["owner"] : ["owner", "initiator"]
  const both: ReadonlyArray<To> = [...source, "recipient"]
  const letters: Readonly<Record<TransferEvent, ReadonlyArray<readonly [string, ReadonlyArray<To>]>>> = {
    // Who owns a domain hears at once of an offer that somebody else made.
    initiated: [
      ["invitation", ["recipient"]],
      ...(initiatedBy === sourceUserId ? [] : [["offered", ["owner"]] as const]),
    ],
    accepted: [["stop", source]],
    declined: [["declined", source]],
    cancelled: [["cancelled", ["recipient"]]],
    stopped: [["reversed", both]],
    expired: [["expired", both]],
    completed: [["completed", both]],
    forced: [["completed", both]],
    overtaken: [[status === "cancelled" ? "cancelled" : "reversed", both]],
    undeliverable: [["reversed", both]],
    extended: [["stop", source]],
  }
  return letters[event]
}

const accountOf = (to: To, { initiatedBy, sourceUserId, targetUserId }: TransferState) =>
  to === "owner" ? sourceUserId : to === "initiator" ? initiatedBy : targetUserId

/** Accounts that a letter tells the same as their notice. */
const mailedBy = (event: TransferEvent, state: TransferState) =>
  new Set(lettersOf(event, state).flatMap(([, all]) => all.map((to) => accountOf(to, state))))

/** A message of the stream: ids, states and times, no address, name or note. */
const messageOf = (state: TransferState, event: TransferEvent, now: number) => {
  const { note: _, source_label: __, target_email: ___, ...shown } = viewOf(state, now)
  return { ...shown, status: state.status, event, forced: state.forced, at: new Date(now).toISOString() }
}

export class Changes extends Context.Service<Changes, {
  /**
   * Writes a transition in the current transaction, all but the notices, which it gives. Conflict: the row or its domain
   * is no longer as it was loaded.
   */
  readonly write: (change: Change) => Effect.Effect<ReadonlyArray<Notice>, SqlError.SqlError | Conflict>
  /** Tells all that was written in the current transaction, as its last step: inboxes are locked after all else. */
  readonly tell: (notices: ReadonlyArray<Notice>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/transfers/Changes") {
  static readonly layer = Layer.effect(
    Changes,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const mails = yield* Mails
      const notifications = yield* Notifications
      const outbox = yield* Outbox
      const timers = yield* Timers
      const { insert, update } = rows(sql)

      const raise = Effect.fnUntraced(function* (domainId: string, revision: bigint | null) {
        const [row] = yield* sql<{ revision: bigint }>`
          update domains set revision = revision + 1
          where id = ${domainId}::uuid ${revision === null ? sql`` : sql`and revision = ${revision}`}
          returning revision`
        return row === undefined ? yield* new Conflict() : row.revision
      })

      const post = Effect.fnUntraced(function* (state: TransferState, event: TransferEvent) {
        const letters = lettersOf(event, state)
        const found = yield* sql<{ id: string; email: string }>`
          select id::text as id, email from accounts
          where id = any(${[state.sourceUserId, state.initiatedBy]}::uuid[]) and email is not null`
        const addresses = new Map(found.map(({ email, id }) => [id, email]))
        const addressOf = (to: To) => to === "recipient" ? state.targetEmail : addresses.get(accountOf(to, state))
        const written = letters.flatMap(([kind, all]) =>
          all.flatMap((to): ReadonlyArray<NewMail> => {
            const recipient = addressOf(to)
            return recipient === undefined
              ? []
              : [{ kind: `transfer.${kind}`, subjectId: state.id, recipient, args: { to, event } }]
          })
        )
        yield* mails.add(...written)
      })

      const write = Effect.fnUntraced(function* ({ actor, after, before, commandId, now, revision, tokens }: Change) {
        const { events: [event], state } = after
        if (event === undefined) return []
        const seq = yield* raise(state.domainId, revision)
        yield* before === null ? insert(state, commandId, tokens ?? {}) : update(before, state, commandId, tokens ?? {})
        yield* timers.set(state.id, timersOf(state).map(({ dueAt, kind }) => ({ dueAt, kind })))
        const sides = { source: state.sourceUserId, target: state.targetUserId } as const
        yield* audit.append(...(["source", "target"] as const).map((side) => ({
          action: `domain-transfer.${event}`,
          actor,
          subject: `account:${sides[side]}`,
          outcome: "done" as const,
          details: { transfer_id: state.id, domain_id: state.domainId, side, status: state.status },
        })))
        if (event !== "extended") {
          yield* outbox.add({
            stream: "TRANSFERS",
            subject: `transfers.v1.${Subject.token(state.domainId)}.${state.status}`,
            payload: JSON.stringify(messageOf(state, event, now)),
            order: { aggregateId: state.domainId, seq },
          })
        }
        yield* post(state, event)
        return noticesOf(state, event, mailedBy(event, state))
      })

      return Changes.of({ write, tell: (notices) => notifications.announce(...notices) })
    }),
  )
}
