/** Mails invitations anew whose links a new epoch has voided, after a restore or failover. */
import { Effect, Redacted } from "effect"
import { Buffer } from "node:buffer"
import type { RequestId } from "../../schemas/BrandedIds.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { Mails } from "../platform/mail/Mails.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { invitationKind, invitationToken } from "../requests/RequestMail.ts"

const chunk = 100

interface Invited {
  readonly id: RequestId
  readonly recipient: string
  readonly kid: string
  readonly nonce: Uint8Array
  readonly hash: Uint8Array
}

export const invitations = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const mails = yield* Mails
  const tokens = yield* OneTimeTokens

  const renew = Effect.fnUntraced(function* ({ hash: dead, id, recipient }: Invited) {
    const { hash, kid, nonce } = tokens.issue(invitationToken, id)
    const renewed = yield* sql`
      update requests set token_kid = ${kid}, token_nonce = ${nonce}, token_hash = ${hash}
      where id = ${id}::uuid and state = 'invited' and token_hash = ${dead} returning 1`
    if (renewed.length === 0) return
    const [mailId] = yield* mails.add({ kind: invitationKind, subjectId: id, recipient, args: {} })
    // The invitation's delivery status is that of the mail whose link works.
    yield* sql`update requests set mail_id = ${mailId!}::uuid where id = ${id}::uuid`
    yield* audit.append({
      action: "enrollment.link-renewed",
      actor: "system",
      subject: `request:${id}`,
      outcome: "done",
    })
  }, sql.withTransaction)

  const works = ({ hash, id, kid, nonce }: Invited) =>
    Buffer.from(hash).equals(
      tokens.hash(Redacted.value(tokens.derive({ kind: invitationToken, id, kid, nonce }))),
    )

  /** Mails all of them; returns how many. */
  const renewLinks = Effect.gen(function* () {
    let renewed = 0
    let after = "00000000-0000-0000-0000-000000000000"
    for (;;) {
      const invited = yield* sql<Invited>`
        select id::text as id, fields ->> 'recipient' as recipient, token_kid as kid, token_nonce as nonce,
          token_hash as hash
        from requests
        where kind = 'enrollment' and state = 'invited' and token_hash is not null and id > ${after}::uuid
        order by id limit ${chunk}`
      for (const one of invited.filter((one) => !works(one))) {
        yield* renew(one)
        renewed++
      }
      const last = invited.at(-1)
      if (last === undefined || invited.length < chunk) return renewed
      after = last.id
    }
  }).pipe(Effect.withSpan("Invitations.renewLinks"))

  return { renewLinks }
})
