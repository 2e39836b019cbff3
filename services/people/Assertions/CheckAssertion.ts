/**
 * Checks a proof: one read, one judgement, one fenced write. The write names the versions of the assertion, of the
 * authenticator and of the lock-out that were read, so of two checks at once one is decided on what the other has
 * written. A refusal is written like a success, in the same statement: none can be tried without being counted.
 */
import { Clock, Effect } from "effect"
import type { AssertionId } from "../../../schemas/BrandedIds.ts"
import type { AssertionProof, CheckedAssertion } from "../../../schemas/identity/Assertion.ts"
import { NotFound, RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, one, unchanged } from "../../platform/database/FencedCommand.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { decisionOf, taking } from "../../platform/security/RateLimits.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import { judging, type Verdict } from "./JudgeProof.ts"
import { afterFailure, lockedSeconds, type Lockout, unlocked } from "./Judgement.ts"
import { loadAssertion, type LoadedAssertion, type Named, personIn, personOf } from "./LoadAssertion.ts"
import { type By, limited } from "./StartAssertion.ts"

/** Checks of one kind for one person in a minute: each kind has its own, so that none uses up another's. */
const checksAMinute = 10
/** Refusals that end an assertion. */
const mostRefused = 5
/** The person is told once no more codes than these are left, and again when none is. */
export const fewCodes = 3

type Passed = Extract<Verdict, { readonly passed: true }>

const limitOf = (key: Uint8Array, type: AssertionProof["type"]) => ({
  key: `assertions.check.${type}:${Buffer.from(key).toString("hex")}`,
  limit: checksAMinute,
  windowMillis: 60_000,
})

/** Only six digits can be guessed; locking anything else would but keep its owner out. */
const isGuessable = (type: AssertionProof["type"]) => type === "totp"

const lockoutOf = ({ failed, locked_until }: LoadedAssertion): Lockout =>
  failed === null ? unlocked : { failed, lockedUntil: locked_until?.getTime() ?? null }

export const checking = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const judge = judging(yield* Vault)

  /** What a proof uses up; missed where the authenticator has changed since it was read. */
  const used = ({ backupState, by, code, counter, step }: Passed, now: Date) => [
    one((earlier) =>
      sql`update authenticators set last_used_at = ${now}, last_step = coalesce(${step ?? null}::bigint, last_step),
          sign_count = coalesce(${counter ?? null}::bigint, sign_count),
          backup_state = coalesce(${backupState ?? null}::boolean, backup_state)
        where id = ${by.id}::uuid and xmin::text = ${by.row} and ${earlier} returning 1`
    ),
    ...(code === undefined ? [] : [
      one((earlier) =>
        sql`update recovery_codes set used_at = ${now}
          where authenticator_id = ${by.id}::uuid and hash = decode(${code}, 'hex') and used_at is null and ${earlier}
          returning 1`
      ),
    ]),
  ]

  const lockoutWritten = (
    { subject_key }: Named,
    kind: string,
    { lock_version }: LoadedAssertion,
    { failed, lockedUntil }: Lockout,
    now: Date,
  ) => {
    const until = lockedUntil === null ? null : new Date(lockedUntil)
    return one((earlier) =>
      sql`insert into authenticator_lockouts as l (subject_key, kind, version, failed, locked_until, changed_at)
        select ${subject_key}, ${kind}, 1, ${failed}::integer, ${until}::timestamptz, ${now}::timestamptz where ${earlier}
        on conflict (subject_key, kind) do update set version = l.version + 1, failed = excluded.failed,
          locked_until = excluded.locked_until, changed_at = excluded.changed_at
        where l.version = ${lock_version ?? 0}::integer
        returning 1`
    )
  }

  const told = Effect.fnUntraced(function* (loaded: LoadedAssertion, { by }: Passed, left: number | null) {
    if (left === null || left > fewCodes || loaded.person_id === null) return
    const kind = left === 0 ? "codes.none" as const : "codes.few" as const
    yield* addNotices(sql, { personId: loaded.person_id, kind, subjectId: by.id })
  })

  const recorded = (by: By, loaded: LoadedAssertion, type: AssertionProof["type"], verdict: Verdict) =>
    audit.append({
      action: verdict.passed ? "assertion.passed" : "assertion.refused",
      actor: by.principal,
      subject: loaded.person_id === null ? null : `person:${loaded.person_id}`,
      outcome: verdict.passed ? "done" : "refused",
      details: {
        assertion_id: loaded.id,
        proof: type,
        authenticator_id: (verdict.passed ? verdict.by.id : verdict.about?.id) ?? null,
        reason: verdict.passed ? null : verdict.because,
      },
    })

  /** Refuses what may not be judged now; the answer is the same for a person who is not known. */
  const admit = Effect.fnUntraced(
    function* (loaded: LoadedAssertion, named: Named, type: AssertionProof["type"], now: number) {
      const seconds = isGuessable(type) ? lockedSeconds(lockoutOf(loaded), now) : 0
      if (seconds > 0) return yield* new RateLimited({ retry_after: seconds })
      const limit = limitOf(named.subject_key, type)
      const rate = decisionOf(limit, loaded.taken, now)
      if (!rate.allowed) return yield* limited(limit.limit, limit.windowMillis, rate)
    },
  )

  /** The fences of a judged check, in the order of locks, and what it changes. */
  const written = Effect.fnUntraced(function* (
    by: By,
    named: Named,
    loaded: LoadedAssertion,
    type: AssertionProof["type"],
    verdict: Verdict,
    now: number,
  ) {
    const at = new Date(now)
    const state = verdict.passed ? "passed" : loaded.refused + 1 >= mostRefused ? "failed" : "pending"
    const lockout = verdict.passed ? unlocked : afterFailure(lockoutOf(loaded), now)
    yield* fence(
      sql,
      ...(verdict.passed ? [unchanged(sql, personOf(sql, by.issuer, named.subject), loaded.person)] : []),
      one((earlier) =>
        sql`update authenticator_assertions set version = version + 1, state = ${state},
            refused = refused + ${verdict.passed ? 0 : 1}::integer,
            challenge = case when ${
          type === "webauthn.get" || state !== "pending"
        }::boolean then null else challenge end
          where id = ${loaded.id}::uuid and version = ${loaded.version}::integer and ${earlier} returning 1`
      ),
      ...(verdict.passed ? used(verdict, at) : []),
      ...(isGuessable(type) ? [lockoutWritten(named, type, loaded, lockout, at)] : []),
      taking(sql, limitOf(named.subject_key, type), now),
    )
    yield* recorded(by, loaded, type, verdict)
    return state
  })

  return Effect.fnUntraced(function* (by: By, id: AssertionId, named: Named, proof: AssertionProof) {
    const { issuer } = by
    const { type } = proof
    const now = yield* Clock.currentTimeMillis
    const loaded = yield* loadAssertion(sql, {
      id,
      issuer,
      kind: type,
      named,
      limit: limitOf(named.subject_key, type),
      now,
    })
    if (loaded.id === null) return yield* new NotFound()
    const nothing: CheckedAssertion = {
      assertion_id: id,
      verified: false,
      ended: true,
      authenticator_id: null,
      kind: null,
      user_verified: null,
      codes_remaining: null,
    }
    if (loaded.state !== "pending" || loaded.expires_at.getTime() <= now) return nothing
    yield* admit(loaded, named, type, now)
    const isSame = personIn(loaded.person) === loaded.person_id
    const verdict = yield* judge(isSame ? loaded : { ...loaded, owned: [] }, proof, now)
    const state = yield* written(by, named, loaded, type, verdict, now)
    if (!verdict.passed) return { ...nothing, ended: state === "failed" }
    const left = verdict.code === undefined ? null : verdict.by.codes.length - 1
    yield* told(loaded, verdict, left)
    return {
      ...nothing,
      verified: true,
      authenticator_id: verdict.by.id,
      kind: verdict.by.kind,
      user_verified: verdict.userVerified ?? null,
      codes_remaining: left,
    }
  })
})
