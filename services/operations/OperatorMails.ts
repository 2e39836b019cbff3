/** Mails that have not been sent, for operators: what the server said, another attempt, and the end of one. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { OutgoingMail, OutgoingMailPage } from "../../schemas/identity/MailView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { masked } from "../platform/mail/MailAddress.ts"
import { type MailRow, MailUpkeep } from "../platform/mail/MailUpkeep.ts"
import { Audit } from "../platform/observability/Audit.ts"
import type { AskedPage } from "./OperatorAudit.ts"
import { mustOperate } from "./OperatorRole.ts"

interface Asked {
  readonly personId: PersonId
  readonly mailId: string
  readonly reason: string
}

type Decided = Effect.Effect<
  OutgoingMail,
  InvalidState | NotFound | RoleRequired | SqlError.SqlError
>

const unsent: ReadonlyArray<string> = ["pending", "failed", "unknown"]

/** A mail as operators see it: its recipient is masked. */
export const outgoingMail = ({ claimed, created_at, not_before, recipient, ...row }: MailRow): OutgoingMail => ({
  ...row,
  recipient: masked(recipient),
  sending: claimed,
  created_at: created_at.toISOString(),
  next_attempt_at: not_before?.toISOString() ?? null,
})

export class OperatorMails extends Context.Service<OperatorMails, {
  /** Newest first; of a state in which a mail has been sent or dropped there is none. */
  readonly list: (
    personId: PersonId,
    state: string,
    page: AskedPage,
  ) => Effect.Effect<OutgoingMailPage, RoleRequired | SqlError.SqlError>
  /** Tries one again at once, in the caller's transaction; InvalidState where it is being sent, was sent or dropped. */
  readonly retry: (asked: Asked) => Decided
  /** Ends one, likewise. */
  readonly forget: (asked: Asked) => Decided
}>()("bailiwick/services/operations/OperatorMails") {
  static readonly layer = Layer.effect(
    OperatorMails,
    Effect.gen(function* () {
      const operating = yield* mustOperate
      const audit = yield* Audit
      const upkeep = yield* MailUpkeep

      const list: OperatorMails["Service"]["list"] = Effect.fn("OperatorMails.list")(
        function* (personId, state, { afterId, limit }) {
          yield* operating(personId)
          if (state !== "pending" && state !== "failed" && state !== "unknown") {
            return { items: [], next_after_id: null }
          }
          const { mails, nextAfterId } = yield* upkeep.list(state, limit, afterId)
          return { items: mails.map(outgoingMail), next_after_id: nextAfterId }
        },
      )

      const decided = Effect.fnUntraced(function* ({ mailId, personId, reason }: Asked, what: "retried" | "forgotten") {
        yield* operating(personId, "share")
        const row = isUuid(mailId) ? yield* upkeep.lock(mailId) : null
        if (row === null) return yield* new NotFound()
        if (row.claimed || !unsent.includes(row.state)) {
          const detail = row.claimed ? "An attempt is under way: try again when it has ended." : "It has ended."
          return yield* new InvalidState({ detail, state: row.claimed ? "sending" : row.state, allowed: unsent })
        }
        const changed = yield* (what === "retried" ? upkeep.again(row.id) : upkeep.forget(row.id))
        yield* audit.append({
          action: `mail.${what}`,
          actor: `person:${personId}`,
          subject: `mail:${row.id}`,
          outcome: "done",
          details: { reason, kind: row.kind, state: row.state },
        })
        return outgoingMail(changed)
      })

      return OperatorMails.of({
        list,
        retry: Effect.fn("OperatorMails.retry")((asked) => decided(asked, "retried")),
        forget: Effect.fn("OperatorMails.forget")((asked) => decided(asked, "forgotten")),
      })
    }),
  )
}
