/**
 * The lists of an account's transfers. One statement reads the credential, the rows and the due ones among them. If
 * some are due, the transitions of at most ten are written and the statement runs again. The others are shown as
 * stored: an accepted transfer is never shown as completed before its domain has moved.
 */
import { Clock, Effect } from "effect"
import type { Credential } from "../../../schemas/api/CredentialsApi.ts"
import type { AccountId, ApiKeyId, TransferId } from "../../../schemas/BrandedIds.ts"
import type { AcceptEligibility } from "../../../schemas/mail/Transfer.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { Principals, who } from "../../authentication/Principals.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Account, counts, limitOf } from "./DecisionReads.ts"
import type { Settled } from "./DueTransitions.ts"

/** Maximum number of due transitions that one list or eligibility check writes. */
const settledAtOnce = 10

interface Read {
  readonly key_id: ApiKeyId | null
  readonly due: ReadonlyArray<TransferId>
  readonly body: string
}

export const lists = Effect.fnUntraced(function* (
  settle: (transferIds: ReadonlyArray<TransferId>) => Effect.Effect<ReadonlyMap<string, Settled>>,
) {
  const { reads, sql } = yield* Database
  const principals = yield* Principals

  const time = (column: string) => `to_char(t.${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

  const times = ["cooloff_until", "initiated_at", "accepted_at", "completed_at", "expires_at"]

  const shown = (now: Date) =>
    reads`t.id, t.domain_id, t.domain_name, t.source_user_id, t.source_org_id, t.source_label, t.target_email,
      t.target_user_id, t.target_org_id,
      case when t.status = 'pending' and t.expires_at <= ${now} then 'expired' else t.status end as status,
      t.note, ${reads.literal(times.map((column) => `${time(column)} as ${column}`).join(", "))}`

  /** SQL: live transfers of `side` with a due transition. */
  const due = (side: "target_user_id" | "initiated_by" | "source_user_id", now: Date) =>
    reads`select t.id from transfers t
      where t.${reads(side)} = who.account_id and (t.status = 'accepted' and t.cooloff_until <= ${now}
        or t.status = 'pending' and t.expires_at <= ${now})
      limit ${settledAtOnce}`

  const which = {
    // Offered to the caller's account, while the account still has the address of the offer.
    incoming: (now: Date) =>
      reads`t.target_user_id = who.account_id
        and (t.status = 'accepted' or t.status = 'pending' and t.expires_at > ${now})
        and exists (select from accounts a where a.id = who.account_id
          and lower(a.email collate "C") = lower(t.target_email collate "C"))`,
    outgoing: () => reads`t.initiated_by = who.account_id`,
  }

  const list = (name: "incoming" | "outgoing") =>
    Effect.fn(`Transfers.${name}`)(function* (credential: Credential["Service"]) {
      const side = name === "incoming" ? "target_user_id" : "initiated_by"
      const read = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* reads<Read>`
          with who as (${who(reads, credential)})
          select key_id::text, array(${due(side, now)})::text[] as due, (
            select array_to_json(array(select row_to_json(v) from (
              select ${shown(now)} from transfers t where ${which[name](now)}
              order by t.initiated_at desc, t.id desc
            ) v))
          )::text as body
          from who`.pipe(Effect.orDie)
        return yield* principals.seen(row)
      })
      const first = yield* read
      if (first.due.length === 0) return first.body
      yield* settle(first.due)
      return (yield* read).body
    })

  /**
   * Whether the plan allows one more domain, as accept would decide now. The specified response has no other blocker;
   * the page and the acceptance report an account without a workspace.
   */
  const eligibility = Effect.fn("Transfers.eligibility")(
    function* (accountId: AccountId): Effect.fn.Return<AcceptEligibility, InvalidCredentials> {
      const now = new Date(yield* Clock.currentTimeMillis)
      const come = yield* sql<{ id: TransferId }>`
        with who as (select ${accountId}::uuid as account_id)
        select id::text as id from who, lateral (
          (${due("target_user_id", now)}) union (${due("source_user_id", now)})) t
        limit ${settledAtOnce}`.pipe(Effect.orDie)
      if (come.length > 0) yield* settle(come.map(({ id }) => id))
      const [room] = yield* reads<Pick<Account, "plan" | "domain_limit"> & { owned: number; coming: number }>`
        select plan, domain_limit, ${counts(reads, sql`a.id`)} from accounts a
        where id = ${accountId}::uuid and status = 'active' and not removed`.pipe(Effect.orDie)
      if (room === undefined) return yield* new InvalidCredentials()
      const limit = limitOf(room)
      const answer = (code: AcceptEligibility["code"], message: string | null) => ({
        can_accept: code === null,
        code,
        message,
        current_domains: room.owned,
        domain_limit: limit,
      })
      if (limit < 0 || room.owned + room.coming < limit) return answer(null, null)
      return answer("domain_limit", `Your plan allows ${limit} ${limit === 1 ? "domain" : "domains"}.`)
    },
  )

  return { incoming: list("incoming"), outgoing: list("outgoing"), eligibility }
})
