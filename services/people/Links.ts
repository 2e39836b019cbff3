/**
 * Two identities of one person become one (DECISIONS-identity 1.7, 1.12). Who asks shows a fresh access token of the other
 * identity; its jti counts once. An operator approves, the other side is told and may object: the link takes effect at
 * the later of the approval and 24 h after the telling. A leaked token alone takes nothing over.
 *
 * The methods that change something run in the caller's transaction, which must be one of `Transact`.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type * as Wire from "../../schemas/identity/Requests.ts"
import { type DependencyUnavailable, NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { type Decision, PolicyReviews, stamp } from "../access/PolicyReviews.ts"
import { type RequestRow, requestRows, reviewWindow, stateAt, timersOf } from "../access/RequestRows.ts"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Mails } from "../platform/Mails.ts"
import { Timers } from "../platform/Timers.ts"
import { type AccessToken, AccessTokens } from "./AccessTokens.ts"
import { type Found, who } from "./Callers.ts"
import { viewOf } from "./Links/answers.ts"
import { merging } from "./Links/Merging.ts"
import { linkNews } from "./Links/News.ts"
import { objection } from "./Links/Objection.ts"
import { roleRequired } from "./Roles.ts"

interface By {
  readonly personId: string
}

/** How fresh the sign-in of the other identity must be, in seconds, and how long a proof may be used. */
const freshSeconds = 300
const proofMillis = 10 * 60_000
/** In bytes: what an entry of an index surely holds. A link to a longer name could never take effect. */
const longestNames = 2_600
const rejected = (field: string) =>
  HTTPValidationError.at(["body", field], "proof_rejected", "The proof does not show another identity of the caller's")

const linkAsked = ({ id, mine }: { readonly id: string; readonly mine: boolean }) =>
  new Problems.RequestExists({
    detail: mine
      ? `Link request ${id} of the caller asks for the same: see GET /v1/me/requests.`
      : "Another person asks for this identity: its holder can object to that, and it can be asked for once that is decided.",
  })

export class Links extends Context.Service<Links, {
  /**
   * Looks at the token, which may ask its issuer for keys and so runs in no transaction, and gives what then makes the
   * proof in one. 422 where it is not a fresh token of another identity that may be linked.
   */
  readonly prove: (asked: By & { readonly token: string }) => Effect.Effect<
    Effect.Effect<Wire.LinkProof, HTTPValidationError | Problems.ProofConsumed | SqlError.SqlError>,
    HTTPValidationError | DependencyUnavailable
  >
  readonly request: (
    asked: Wire.LinkCreate & By,
  ) => Effect.Effect<
    Wire.LinkRequest,
    | NotFound
    | HTTPValidationError
    | Problems.FourEyesCollapsed
    | Problems.ProofConsumed
    | Problems.ProofExpired
    | Problems.RequestExists
    | SqlError.SqlError
  >
  /** The other side says no. */
  readonly object: (
    asked: By & { readonly linkRequestId: string; readonly reason: string | null },
  ) => Effect.Effect<
    Wire.LinkRequest,
    NotFound | Problems.RoleRequired | Problems.InvalidState | SqlError.SqlError
  >
  /** An operator approved: from now on the clock decides. */
  readonly carryOut: (decision: Decision) => Effect.Effect<void, Problems.FourEyesCollapsed | SqlError.SqlError>
  /** Links what is due: what its timer does. */
  readonly settle: (request: RequestRow) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/people/Links") {
  static readonly layer = Layer.effect(
    Links,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const audit = yield* Audit
      const ids = yield* Ids
      const reviews = yield* PolicyReviews
      const timers = yield* Timers
      const tokens = yield* AccessTokens
      const rows = requestRows(sql)
      const { decidedTogether, entangled, lockBoth, merge } = merging(sql)
      const news = yield* linkNews()
      const { notify, until: objectionUntil } = objection(sql, yield* Mails)

      /** Whose identity it is, null while it is nobody's. */
      const holderOf = Effect.fnUntraced(function* (issuer: string, subject: string) {
        const [row] = yield* sql<{ person_id: string }>`
          select coalesce(p.merged_into, p.id) as person_id from identities i join people p on p.id = i.person_id
          where i.issuer = ${issuer} and i.subject = ${subject}`
        return row?.person_id ?? null
      })

      const linkable = Effect.fnUntraced(function* (holder: string | null) {
        if (holder === null) return true
        const active = yield* lockBoth([holder])
        return active.has(holder) && !(yield* entangled(holder))
      })

      const moved = Effect.fnUntraced(function* (row: RequestRow, action: string, actor: string, more: object = {}) {
        yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
        yield* audit.append({
          action: `link-request.${action}`,
          actor,
          subject: `request:${row.id}`,
          outcome: "done",
          details: { other: row.person_id, ...more },
        })
      })

      const prove: Links["Service"]["prove"] = Effect.fn("Links.prove")(function* ({ personId, token }) {
        const said = yield* tokens.verify(token).pipe(Effect.catchTag("InvalidToken", () => rejected("token")))
        return proven(personId, said)
      })

      const proven = Effect.fnUntraced(function* (personId: string, said: AccessToken) {
        const now = yield* Clock.currentTimeMillis
        const fresh = said.authTime !== null && now / 1000 - said.authTime <= freshSeconds
        if (said.via !== "person" || !fresh) return yield* rejected("token")
        const holder = yield* holderOf(said.issuer, said.subject)
        // A leaked token that its person has put an end to shows nothing any more, nor one that nobody may sign in with.
        const [found] = yield* sql<Found>`${who(sql, said)}`
        if (found === undefined ? holder !== null : found.revoked) return yield* rejected("token")
        if (holder === personId || !(yield* linkable(holder))) return yield* rejected("token")
        if (holder === null && Buffer.byteLength(said.issuer + said.subject) > longestNames) {
          return yield* rejected("token")
        }
        const id = yield* ids.next
        const expiresAt = new Date(now + proofMillis)
        const made = yield* sql`
          insert into link_proofs (id, person_id, issuer, subject, jti, created_at, expires_at)
          values (${id}::uuid, ${personId}, ${said.issuer}, ${said.subject}, ${said.jti}, ${new Date(
          now,
        )}, ${expiresAt})
          on conflict do nothing returning 1`
        if (made.length === 0) return yield* new Problems.ProofConsumed()
        const [actor, subject] = [`person:${personId}`, `link-proof:${id}`]
        yield* audit.append({ action: "link-proof.made", actor, subject, outcome: "done", details: { other: holder } })
        return { proof_id: id, expires_at: stamp(expiresAt) }
      })

      const takeProof = Effect.fnUntraced(function* (personId: string, proofId: string) {
        const now = yield* Clock.currentTimeMillis
        const [proof] = isUuid(proofId)
          ? yield* sql<{ issuer: string; subject: string; expires_at: Date; consumed_at: Date | null }>`
            select issuer, subject, expires_at, consumed_at from link_proofs
            where id = ${proofId}::uuid and person_id = ${personId} for update`
          : []
        if (proof === undefined) return yield* new NotFound()
        if (proof.consumed_at !== null) return yield* new Problems.ProofConsumed()
        if (proof.expires_at.getTime() <= now) return yield* new Problems.ProofExpired()
        yield* sql`update link_proofs set consumed_at = ${new Date(now)} where id = ${proofId}::uuid`
        return proof
      })

      const request: Links["Service"]["request"] = Effect.fn("Links.request")(
        function* ({ personId, proof_id, reason }) {
          const { issuer, subject } = yield* takeProof(personId, proof_id)
          const holder = yield* holderOf(issuer, subject)
          const now = yield* Clock.currentTimeMillis
          // Two who ask for one identity at once: the second sees the first one's request.
          yield* sql`select pg_advisory_xact_lock(hashtextextended(${`link ${issuer} ${subject}`}, 0))`
          const [open] = yield* sql<{ mine: boolean; id: string }>`
            select author = ${personId} as mine, id::text as id from requests
            where kind = 'link' and state = 'pending_review' and fields ->> 'issuer' = ${issuer}
              and fields ->> 'subject' = ${subject} and (effective_at is not null or expires_at > ${new Date(now)})
            limit 1`
          if (open !== undefined) return yield* linkAsked(open)
          if (holder !== null && (yield* decidedTogether(personId, holder))) {
            return yield* new Problems.FourEyesCollapsed()
          }
          if (holder === personId || !(yield* linkable(holder))) return yield* rejected("proof_id")
          const row = (yield* rows.insert({
            id: yield* ids.next,
            kind: "link",
            state: "pending_review",
            author: personId,
            personId: holder,
            fields: { issuer, subject, proof_id },
            reason,
            expiresAt: new Date(now + reviewWindow),
          }))!
          yield* notify(row)
          const review = yield* reviews.open(row, ["operator"])
          yield* moved(row, "submitted", `person:${personId}`)
          return viewOf(row, review)
        },
      )

      const object: Links["Service"]["object"] = Effect.fn("Links.object")(
        function* ({ linkRequestId, personId, reason }) {
          if (!isUuid(linkRequestId)) return yield* new NotFound()
          yield* reviews.lockOpen(linkRequestId)
          const row = yield* rows.lock(linkRequestId)
          if (row?.kind !== "link") return yield* new NotFound()
          if (row.author === personId) {
            return yield* roleRequired("the other side of the link: its author cannot object to it")
          }
          if (row.person_id !== personId) return yield* new NotFound()
          const state = stateAt(row, yield* Clock.currentTimeMillis)
          if (state !== "pending_review") {
            return yield* new Problems.InvalidState({ state, allowed: ["pending_review"] })
          }
          yield* reviews.supersede(row.id)
          const declined = yield* rows.change(row, { state: "declined" })
          yield* moved(declined, "objected", `person:${personId}`, { reason })
          return viewOf(declined, yield* reviews.of(row.id))
        },
      )

      const signers = ({ id }: RequestRow) =>
        Effect.map(
          sql<{ person_id: string }>`
            select a.person_id from policy_approvals a join policy_reviews v on v.id = a.review_id
            where v.request_id = ${id}::uuid`,
          (found) => found.map(({ person_id }) => person_id),
        )

      /** Links, or declines what may not be linked any more. */
      const link = Effect.fnUntraced(function* (row: RequestRow) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const { issuer, subject } = row.fields as { readonly issuer: string; readonly subject: string }
        const other = row.person_id
        const active = yield* lockBoth([row.author, ...(other === null ? [] : [other])])
        const holder = yield* holderOf(issuer, subject)
        const sound = active.has(row.author) && holder === other &&
          (other === null ||
            active.has(other) && !(yield* entangled(other)) && !(yield* decidedTogether(row.author, other)))
        if (!sound) {
          return yield* moved(yield* rows.change(row, { state: "declined" }), "declined", "system")
        }
        const approvedBy = yield* signers(row)
        const pair = yield* news.about(row)
        if (other !== null) yield* merge({ from: other, into: row.author, approvedBy, now })
        else {
          yield* sql`insert into identities (issuer, subject, person_id, linked_at, made_by, approved_by)
            values (${issuer}, ${subject}, ${row.author}, ${now}, ${row.author}, ${[...approvedBy]}::text[])`
        }
        const eventId = yield* news.tell(pair)
        const linked = yield* rows.change(row, {
          state: "linked",
          resultId: row.author,
          ...(eventId === undefined ? {} : { eventId }),
        })
        yield* moved(linked, "linked", "system")
      })

      const settle = Effect.fn("Links.settle")(function* (read: RequestRow) {
        // People are locked before requests.
        yield* lockBoth([read.author, ...(read.person_id === null ? [] : [read.person_id])])
        const row = yield* rows.lock(read.id)
        const now = yield* Clock.currentTimeMillis
        if (row?.state !== "pending_review" || row.effective_at === null || row.effective_at.getTime() > now) return
        const until = yield* objectionUntil(row, now)
        if (until <= now) return yield* link(row)
        const later = yield* rows.change(row, { effectiveAt: new Date(until) })
        yield* timers.set(later.id, timersOf(later, now))
      })

      const carryOut: Links["Service"]["carryOut"] = Effect.fn("Links.carryOut")(function* ({ approvedBy, request }) {
        if (request.person_id !== null && (yield* decidedTogether(request.author, request.person_id))) {
          return yield* new Problems.FourEyesCollapsed()
        }
        const now = yield* Clock.currentTimeMillis
        const effectiveAt = new Date(Math.max(now, yield* objectionUntil(request, now)))
        const row = yield* rows.change(request, { effectiveAt })
        yield* moved(row, "approved", `person:${approvedBy.at(-1)!}`)
        if (effectiveAt.getTime() <= now) yield* link(row)
      })

      return Links.of({ prove, request, object, carryOut, settle })
    }),
  )
}
