/**
 * Requests a link with an identity that the person has proven to be theirs. Of two concurrent requests for one identity
 * a trigger of `requests` refuses the second, which begins anew and is refused because of the first.
 */
import { Clock, Effect } from "effect"
import { type LinkProofId, type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, load, one, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { Mails } from "../../platform/mail/Mails.ts"
import { viewOf } from "./LinkViews.ts"
import { type Held, held, holderIn, holderOf, isLinkable, rejected } from "./Holder.ts"
import { noticeTo } from "./Objection.ts"
import { recording } from "./Records.ts"

export type Asking = Wire.LinkCreate & { readonly personId: PersonId }

interface Open {
  readonly id: RequestId
  readonly mine: boolean
}

/** The columns of the proof are null where the caller has no proof with this id. */
interface Loaded extends Held {
  readonly issuer: string
  readonly subject: string
  readonly expires_at: Date | null
  readonly consumed_at: Date | null
  /** A request for the same identity that is not decided yet. */
  readonly open: Open | null
  readonly together: boolean
}

const linkAsked = ({ id, mine }: Open) =>
  new Problems.RequestExists({
    detail: mine
      ? `Link request ${id} of the caller asks for the same: see GET /v1/me/requests.`
      : "Another person asks for this identity: its holder can object to that, and it can be asked for once that is decided.",
  })

const decide = Effect.fnUntraced(function* (loaded: Loaded, personId: PersonId, now: number) {
  if (loaded.expires_at === null) return yield* new NotFound()
  if (loaded.consumed_at !== null) return yield* new Problems.ProofConsumed()
  if (loaded.expires_at.getTime() <= now) return yield* new Problems.ProofExpired()
  if (loaded.open !== null) return yield* linkAsked(loaded.open)
  if (loaded.together) return yield* new Problems.FourEyesCollapsed()
  const holder = holderIn(loaded.holder)
  if (!isLinkable(holder, loaded.entangled, personId)) return yield* rejected("proof_id")
  return holder
})

export const asking = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const mails = yield* Mails
  const reviews = yield* PolicyReviews
  const recorded = yield* recording
  const added = newRequest(sql)

  const read = (personId: PersonId, proofId: LinkProofId, now: Date) => {
    const { columns, join } = held(sql, sql`p.issuer`, sql`p.subject`)
    return load<Loaded>(
      sql,
      sql`
      select p.issuer, p.subject, p.expires_at, p.consumed_at, ${columns},
        case when h.id is not null then decided_together(${personId}, h.id) else false end as together,
        (select json_build_object('id', id, 'mine', author = ${personId}) from requests
          where kind = 'link' and state = 'pending_review' and fields ->> 'issuer' = p.issuer
            and fields ->> 'subject' = p.subject and (effective_at is not null or expires_at > ${now})
          limit 1) as open
      from (select) always
      left join link_proofs p on p.id = ${isUuid(proofId) ? proofId : null}::uuid and p.person_id = ${personId}
      ${join}`,
    )
  }

  return Effect.fn("Links.request")(function* ({ personId, proof_id, reason }: Asking) {
    const millis = yield* Clock.currentTimeMillis
    const now = new Date(millis)
    const loaded = yield* read(personId, proof_id, now)
    const holder = yield* decide(loaded, personId, millis)

    const { issuer, subject } = loaded
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "link",
      state: "pending_review",
      author: personId,
      personId: holder?.id ?? null,
      fields: { issuer, subject, proof_id },
      reason,
      expiresAt: new Date(millis + reviewWindow),
    }, now)
    yield* fence(
      sql,
      unchanged(sql, holderOf(sql, sql`${issuer}`, sql`${subject}`), loaded.holder),
      one((earlier) =>
        sql`update link_proofs set consumed_at = ${now}
          where id = ${proof_id}::uuid and consumed_at is null and ${earlier} returning 1`
      ),
      added(row),
    )
    const email = holder?.email ?? null
    if (email !== null) yield* mails.add(noticeTo(row.id, email))
    const review = yield* reviews.open(row, ["operator"])
    yield* recorded(row, "submitted", `person:${personId}`)
    return viewOf(row, review)
  })
})
