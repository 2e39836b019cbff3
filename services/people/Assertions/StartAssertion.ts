/** Starts an assertion: the same statements and the same work whether or not the issuer has such a person. */
import { Clock, Effect } from "effect"
import { createHash } from "node:crypto"
import { AssertionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { assertionTtlSeconds, type StartAssertion, type StartedAssertion } from "../../../schemas/identity/Assertion.ts"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, newRow } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { type RateDecision, RateLimits } from "../../platform/security/RateLimits.ts"
import { challengeHash, mayAsk, type RelyingParty, requestOptions } from "../Authenticators/Webauthn.ts"
import { loadPerson, personIn, type Stored } from "./LoadAssertion.ts"

/** The calling client of an issuer. */
export interface By {
  readonly principal: string
  readonly issuer: string
}

/** Starts for one subject in a minute. */
const startsAMinute = 30

export const limited = (limit: number, windowMillis: number, { retryAfterSeconds }: RateDecision) =>
  new RateLimited({ retry_after: retryAfterSeconds, limit, window_seconds: windowMillis / 1_000 })

/** By what failures are counted: of a person over all issuers, of an unknown subject alike. */
const keyOf = (personId: PersonId | null, issuer: string, subject: string) =>
  createHash("sha256").update(personId === null ? `subject\0${issuer}\0${subject}` : `person\0${personId}`).digest()

const isUsable = ({ codes, kind }: Stored) => kind !== "password" && (kind !== "recovery_codes" || codes.length > 0)

const kindsOf = (owned: ReadonlyArray<Stored>) => [...new Set(owned.filter(isUsable).map(({ kind }) => kind))]

export const starting = Effect.fnUntraced(function* (party: RelyingParty) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const ids = yield* Ids
  const limits = yield* RateLimits
  const row = newRow(sql, "authenticator_assertions", {
    id: "uuid",
    issuer: "text",
    subject: "text",
    person_id: "text",
    subject_key: "bytea",
    rp_id: "text",
    origins: "text[]",
    user_verification: "text",
    challenge: "bytea",
    state: "text",
    version: "integer",
    created_at: "timestamptz",
    expires_at: "timestamptz",
  })

  /** Limits starts before anything is read, by what the caller named: so the limit tells nothing of a person. */
  const admit = Effect.fnUntraced(function* ({ issuer }: By, subject: string) {
    const hash = createHash("sha256").update(`${issuer}\0${subject}`).digest("hex")
    const limit = { key: `assertions.start:${hash}`, limit: startsAMinute, windowMillis: 60_000 }
    const taken = yield* Effect.orDie(limits.take(limit))
    if (!taken.allowed) return yield* limited(limit.limit, limit.windowMillis, taken)
  })

  const start = Effect.fnUntraced(function* (by: By, asked: StartAssertion, origins: ReadonlyArray<string>) {
    const { subject } = asked
    const { owned, person } = yield* loadPerson(sql, by.issuer, subject)
    const personId = personIn(person)
    const now = yield* Clock.currentTimeMillis
    const at = (millis: number) => new Date(millis).toISOString()
    const id = AssertionId.make(yield* ids.next)
    const userVerification = asked.user_verification ?? "required"
    const known = owned.flatMap(({ credential_id: id, transports }) => id === null ? [] : [{ id, transports }])
    const options = yield* requestOptions(party, known, { timeout: assertionTtlSeconds * 1_000, userVerification })
    const expires_at = at(now + assertionTtlSeconds * 1_000)
    const hex = (value: Uint8Array) => `\\x${Buffer.from(value).toString("hex")}`
    yield* fence(
      sql,
      row({
        id,
        issuer: by.issuer,
        subject,
        person_id: personId,
        subject_key: hex(keyOf(personId, by.issuer, subject)),
        rp_id: party.id,
        origins,
        user_verification: userVerification,
        challenge: hex(challengeHash(options.challenge)),
        state: "pending",
        version: 1,
        created_at: at(now),
        expires_at,
      }),
    )
    yield* audit.append({
      action: "assertion.started",
      actor: by.principal,
      subject: personId === null ? null : `person:${personId}`,
      outcome: "done",
      details: { assertion_id: id },
    })
    const started: StartedAssertion = {
      assertion_id: id,
      kinds: kindsOf(owned),
      expires_at,
      public_key: known.length === 0 ? null : { ...options },
    }
    return started
  })

  /** The origins whose page may answer: the one that was named, where browsers let it use the party's domain. */
  const originsOf = ({ origin }: StartAssertion) =>
    origin == null
      ? Effect.succeed(party.origins)
      : mayAsk(party, origin)
      ? Effect.succeed([origin])
      : HTTPValidationError.at(
        ["body", "origin"],
        "value_error",
        `Value error, not an https origin of ${party.id} or below it`,
      )

  return { admit, originsOf, start }
})
