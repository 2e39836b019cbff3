/** Makes a proof from a fresh access token of another identity; each token counts once. */
import { Clock, Effect } from "effect"
import { LinkProofId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { ProofConsumed } from "../../../schemas/problems/IdentityProblems.ts"
import { stamp } from "../../requests/PolicyReviews.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, load, newRow, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { type AccessToken, AccessTokens } from "../../people/AccessTokens.ts"
import { who } from "../../people/CallerAuthentication.ts"
import { type Held, held, holderIn, holderOf, isLinkable, rejected } from "./Holder.ts"

export interface Shown {
  readonly personId: PersonId
  readonly token: string
}

/** How fresh the sign-in of the other identity must be, in seconds, and how long a proof may be used. */
const freshSeconds = 300
const proofMillis = 10 * 60_000
/**
 * Bytes of issuer and subject that an index entry surely holds. A link to a longer identity could never take effect.
 */
const longestNames = 2_600

interface Loaded extends Held {
  /** Whether the token's sign-in has ended; null where the identity has no person who may sign in. */
  readonly revoked: boolean | null
  readonly consumed: boolean
}

/** Decides; returns the id of the identity's person, null where it has none. */
const decide = Effect.fnUntraced(function* (loaded: Loaded, personId: PersonId, { issuer, subject }: AccessToken) {
  const holder = holderIn(loaded.holder)
  // Rejects a token whose sign-in its person has ended (it may have leaked), and one of a person who may not sign in.
  if (loaded.revoked === null ? holder !== null : loaded.revoked) return yield* rejected("token")
  if (!isLinkable(holder, loaded.entangled, personId)) return yield* rejected("token")
  if (holder === null && Buffer.byteLength(issuer + subject) > longestNames) return yield* rejected("token")
  if (loaded.consumed) return yield* new ProofConsumed()
  return holder?.id ?? null
})

export const proving = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const ids = yield* Ids
  const tokens = yield* AccessTokens

  const added = newRow(sql, "link_proofs", {
    id: "uuid",
    person_id: "text",
    issuer: "text",
    subject: "text",
    jti: "text",
    created_at: "timestamptz",
    expires_at: "timestamptz",
  })

  const read = (said: AccessToken) => {
    const { columns, join } = held(sql, sql`${said.issuer}`, sql`${said.subject}`)
    return load<Loaded>(
      sql,
      sql`
      select ${columns}, w.revoked,
        exists (select from link_proofs where issuer = ${said.issuer} and jti = ${said.jti}) as consumed
      from (select) always left join (${who(sql, said)}) w on true ${join}`,
    )
  }

  return Effect.fn("Links.prove")(function* ({ personId, token }: Shown) {
    const said = yield* tokens.verify(token).pipe(Effect.catchTag("InvalidToken", () => rejected("token")))
    const { authTime, issuer, jti, subject, via } = said
    const now = yield* Clock.currentTimeMillis
    if (via !== "person" || authTime === null || now / 1000 - authTime > freshSeconds) return yield* rejected("token")
    const loaded = yield* read(said)
    const other = yield* decide(loaded, personId, said)

    const id = LinkProofId.make(yield* ids.next)
    const expiresAt = new Date(now + proofMillis)
    const made = { created_at: new Date(now).toISOString(), expires_at: expiresAt.toISOString() }
    yield* fence(
      sql,
      unchanged(sql, holderOf(sql, sql`${issuer}`, sql`${subject}`), loaded.holder),
      added({ id, person_id: personId, issuer, subject, jti, ...made }),
    )
    const [actor, about] = [`person:${personId}`, `link-proof:${id}`]
    yield* audit.append({ action: "link-proof.made", actor, subject: about, outcome: "done", details: { other } })
    return { proof_id: id, expires_at: stamp(expiresAt) }
  })
})
