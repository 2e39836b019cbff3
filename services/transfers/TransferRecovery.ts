/**
 * Repairs transfers after a restore or a failover of the database. Decisions that the restored database lost are read
 * from the stream TRANSFERS and made again, so that no stopped transfer completes and no completed one is undone.
 * Mailed links that no longer work are mailed again; an accepted transfer can then be stopped for one hour longer.
 */
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { Buffer } from "node:buffer"
import { CommandId, type DomainId, TransferId, WorkspaceUuid } from "../../schemas/BrandedIds.ts"
import { TransferStatus } from "../../schemas/mail/Transfer.ts"
import { Uuid } from "../../schemas/Wire.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { Mails } from "../platform/mail/Mails.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { type DkimKey, keyOf } from "./DkimKeys.ts"
import { TransitionWriter } from "./Transfers/TransitionWriter.ts"
import type { TransferEvent } from "./Transfers/TransferCommands.ts"
import { move, revoke, revokedFrom } from "./Transfers/DomainMove.ts"
import { domainColumns, domainOf, type DomainRow } from "./Transfers/DecisionReads.ts"
import { rows, type Stored } from "./Transfers/Rows.ts"
import type { TransferState } from "./Transfers/TransferState.ts"

const longerMillis = 3_600_000
const chunk = 100

/** The members of a message on TRANSFERS that recovery needs. */
const TransferMessage = Schema.Struct({
  id: TransferId.check(Schema.isGUID()),
  domain_id: Uuid,
  status: TransferStatus,
  target_org_id: Schema.NullOr(WorkspaceUuid),
  /** The reason for the status; missing in messages of older versions. */
  event: Schema.optionalKey(Schema.String),
})
export type PublishedTransfer = typeof TransferMessage.Type
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(TransferMessage))

/** Reads a message of the stream; null if it is not one of a transfer. */
export const publishedTransfer = (text: string): PublishedTransfer | null => Option.getOrNull(decode(text))

const endings = {
  completed: "completed",
  declined: "declined",
  cancelled: "cancelled",
  reversed: "stopped",
  expired: "expired",
} as const satisfies Partial<Record<TransferStatus, TransferEvent>>

/** Further reasons for these states. */
const reasons: Readonly<Record<string, ReadonlyArray<TransferEvent>>> = {
  cancelled: ["overtaken", "superseded"],
  reversed: ["overtaken", "superseded", "undeliverable"],
}

const isEnding = (status: TransferStatus): status is keyof typeof endings => status in endings

interface Linked {
  readonly id: TransferId
  readonly status: "pending" | "accepted"
  readonly kid: string
  readonly nonce: Uint8Array
  readonly hash: Uint8Array
}

/** Recovery of transfers: `redecide` one message of the stream; `renewLinks` of all live transfers. */
export const lostTransfers = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const changes = yield* TransitionWriter
  const ids = yield* Ids
  const mails = yield* Mails
  const tokens = yield* OneTimeTokens
  const moving = { sql, outbox: yield* Outbox }
  const { byId, lockById } = rows(sql)

  /** Runs a change in a transaction, as a change that the clock makes. */
  const byClock = <A, E, R>(command: Effect.Effect<A, E, R>) =>
    Effect.provideService(run(command, { finds: true, faults: "transfer.clock" }), Database, database)

  const lockDomain = (id: DomainId) =>
    Effect.map(
      sql<DomainRow & { removed: boolean }>`
        select ${sql.literal(domainColumns)}, removed from domains where id = ${id}::uuid for update`,
      ([row]) => row === undefined || row.removed ? null : domainOf(row),
    )

  /** A transfer and its domain, locked; null if the transfer is no longer live. */
  const locked = Effect.fnUntraced(function* (id: TransferId) {
    const read = yield* byId(id)
    if (read === null) return null
    const domain = yield* lockDomain(read.state.domainId)
    const stored = yield* lockById(id)
    const live = stored?.state.status === "pending" || stored?.state.status === "accepted"
    return domain === null || stored === null || !live ? null : { domain, stored }
  })

  const write = Effect.fnUntraced(function* (
    before: Stored,
    state: TransferState,
    event: TransferEvent,
    revision: bigint,
    token: { readonly stop?: ReturnType<typeof tokens.issue> } = {},
    key: DkimKey | null = null,
  ) {
    const now = yield* Clock.currentTimeMillis
    const completed = state.status === "completed" ? [state] : []
    const revoked = yield* revoke(sql, completed, now)
    const notices = yield* changes.write({
      before,
      after: { state, events: [event] },
      actor: "system",
      commandId: CommandId.make(yield* ids.next),
      revision,
      now,
      tokens: token,
      circumstances: { revoked: revokedFrom(revoked, state), key },
    })
    yield* move(moving, completed.map((state) => ({ state, key })), revoked, now)
    yield* changes.tell(notices)
  })

  /**
   * Makes the last published decision on a transfer again. `redecided`: done; `known`: the database has the decision,
   * or a later one; `unknown`: the database does not have the transfer. A completed transfer gets the DKIM key of its
   * acceptance; if the database has lost that key's private part, the domain keeps its old key.
   */
  const redecide = Effect.fn("LostTransfers.redecide")(function* (published: PublishedTransfer) {
    const { event: reason, id, status, target_org_id } = published
    const found = yield* locked(id)
    if (found === null) return (yield* byId(id)) === null ? "unknown" : "known"
    if (!isEnding(status)) return "known" as const
    const now = yield* Clock.currentTimeMillis
    const { state } = found.stored
    const organization = target_org_id ?? state.targetOrgId
    const completed = status === "completed"
    if (completed && organization === null) return "unknown" as const
    const event = reasons[status]?.find((one) => one === reason) ?? endings[status]
    const key = completed && state.rotateDkim ? yield* keyOf(sql, state) : null
    const ended: TransferState = {
      ...state,
      status,
      cooloffUntil: null,
      acceptUsed: true,
      stopUsed: event === "stopped",
      ...(completed
        ? {
          targetOrgId: organization,
          acceptedAt: state.acceptedAt ?? now,
          completedAt: now,
          rotateDkim: key !== null,
        }
        : {}),
    }
    yield* write(found.stored, ended, event, found.domain.revision, {}, key)
    return "redecided" as const
  }, byClock)

  const renew = Effect.fnUntraced(function* ({ id, status }: Linked) {
    const found = yield* locked(id)
    if (found === null || found.stored.state.status !== status) return
    const { domain, stored: { state } } = found
    if (status === "accepted") {
      const now = yield* Clock.currentTimeMillis
      const cooloffUntil = Math.max(state.cooloffUntil!, now) + longerMillis
      const stop = tokens.issue("transfer-stop", id)
      return yield* write(found.stored, { ...state, cooloffUntil }, "extended", domain.revision, { stop })
    }
    const { hash, kid, nonce } = tokens.issue("transfer-accept", id)
    yield* sql`
      update transfers set accept_kid = ${kid}, accept_nonce = ${nonce}, accept_hash = ${hash}
      where id = ${id}::uuid`
    yield* mails.add({
      kind: "transfer.invitation",
      subjectId: id,
      recipient: state.targetEmail,
      args: { to: "recipient", event: "initiated" },
    })
    yield* audit.append({
      action: "domain-transfer.link-renewed",
      actor: "system",
      subject: `account:${state.targetUserId}`,
      outcome: "done",
      details: { transfer_id: id, domain_id: state.domainId },
    })
  })

  /** Whether the link that a mail would contain now is still valid. */
  const works = ({ hash, id, kid, nonce, status }: Linked) =>
    Buffer.from(hash).equals(tokens.hash(Redacted.value(tokens.derive({
      kind: status === "pending" ? "transfer-accept" : "transfer-stop",
      id,
      kid,
      nonce,
    }))))

  /** Mails a new link for each live transfer whose link no longer works; returns their number. */
  const renewLinks = Effect.gen(function* () {
    let renewed = 0
    let after = "00000000-0000-0000-0000-000000000000"
    for (;;) {
      const live = yield* sql<Linked>`
        select id::text as id, status, case status when 'pending' then accept_kid else stop_kid end as kid,
          case status when 'pending' then accept_nonce else stop_nonce end as nonce,
          case status when 'pending' then accept_hash else stop_hash end as hash
        from transfers where status in ('pending', 'accepted') and id > ${after}::uuid order by id limit ${chunk}`
      for (const one of live.filter((one) => !works(one))) {
        yield* byClock(renew(one))
        renewed++
      }
      const last = live.at(-1)
      if (last === undefined || live.length < chunk) return renewed
      after = last.id
    }
  }).pipe(Effect.withSpan("LostTransfers.renewLinks"))

  return { redecide, renewLinks }
})

/** The services of this domain that `lostTransfers` needs. */
export const lostTransfersLayer = TransitionWriter.layer
