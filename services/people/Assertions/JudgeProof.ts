/** Judges a proof by the authenticators that were loaded. It changes nothing, and says nothing to the caller. */
import { Effect } from "effect"
import { timingSafeEqual } from "node:crypto"
import type { AssertionProof } from "../../../schemas/identity/Assertion.ts"
import type { Vault } from "../../platform/security/Vault.ts"
import { hashOf } from "../Authenticators/RecoveryCodes.ts"
import { stepOf } from "../Authenticators/Totp.ts"
import { asserted } from "../Authenticators/Webauthn.ts"
import { isNewCount, isNewStep } from "./Judgement.ts"
import type { LoadedAssertion, Stored } from "./LoadAssertion.ts"

/** Why a proof is refused; for the audit alone. */
export type Refusal = "no_authenticator" | "wrong" | "replayed" | "counter_regressed" | "challenge_spent"

export type Verdict =
  | { readonly passed: false; readonly because: Refusal; readonly about: Stored | null }
  | {
    readonly passed: true
    readonly by: Stored
    readonly step?: number
    readonly counter?: number
    readonly backupState?: boolean
    readonly userVerified?: boolean
    /** The hash of the recovery code, in hexadecimal. */
    readonly code?: string
  }

const refused = (because: Refusal, about: Stored | null = null): Verdict => ({ passed: false, because, about })

const bytes = (hex: string | null) => new Uint8Array(Buffer.from(hex ?? "", "hex"))

export const judging = (vault: Vault["Service"]) => {
  const byCode = (owned: ReadonlyArray<Stored>, code: string, now: number): Verdict => {
    const apps = owned.filter(({ kind }) => kind === "totp")
    let verdict = refused(apps.length === 0 ? "no_authenticator" : "wrong")
    for (const app of apps) {
      const cell = { table: "authenticators", column: "secret", row: app.id }
      const seed = vault.open({ kid: app.kid!, bytes: bytes(app.secret) }, cell)
      const step = stepOf(seed, code, now)
      if (step === null || verdict.passed) continue
      verdict = isNewStep(step, app.last_step) ? { passed: true, by: app, step } : refused("replayed", app)
    }
    return verdict
  }

  const byRecoveryCode = (owned: ReadonlyArray<Stored>, code: string): Verdict => {
    const sets = owned.filter(({ kind }) => kind === "recovery_codes")
    let verdict = refused(sets.length === 0 ? "no_authenticator" : "wrong")
    for (const set of sets) {
      for (const { hash, kid } of set.codes) {
        const shown = hashOf(vault, set.id, code, kid).hash
        if (timingSafeEqual(shown, bytes(hash))) verdict = { passed: true, by: set, code: hash }
      }
    }
    return verdict
  }

  const bySignature = Effect.fnUntraced(function* (
    loaded: LoadedAssertion,
    { credential: response }: Extract<AssertionProof, { readonly type: "webauthn.get" }>,
  ): Effect.fn.Return<Verdict> {
    const one = loaded.owned.find(({ credential_id: id }) => id !== null && id === response.id)
    if (one === undefined) return refused("no_authenticator")
    if (loaded.challenge === null) return refused("challenge_spent", one)
    const signed = yield* asserted({
      party: { id: loaded.rp_id, origins: loaded.origins },
      challenge: loaded.challenge,
      userVerification: loaded.user_verification,
      credential: { id: one.credential_id!, publicKey: bytes(one.public_key), personId: one.person_id },
    }, response)
    if (signed === null) return refused("wrong", one)
    return isNewCount(signed.counter, one.sign_count ?? 0)
      ? { passed: true, by: one, ...signed }
      : refused("counter_regressed", one)
  })

  return (loaded: LoadedAssertion, proof: AssertionProof, now: number): Effect.Effect<Verdict> => {
    switch (proof.type) {
      case "webauthn.get":
        return bySignature(loaded, proof)
      case "totp":
        return Effect.sync(() => byCode(loaded.owned, proof.code, now))
      case "recovery_code":
        return Effect.sync(() => byRecoveryCode(loaded.owned, proof.code))
    }
  }
}
