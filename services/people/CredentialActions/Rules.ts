/** The credential actions that a person can take now, and the age and strength of sign-in that they need. */
import {
  type ActionKind,
  ActionKind as ActionKinds,
  actionTable,
  type Capabilities,
  intentTtlSeconds,
} from "../../../schemas/identity/CredentialAction.ts"
import type { Freshness } from "../../../schemas/identity/IdentityAccount.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { acrOf } from "../../../schemas/identity/Assurance.ts"
import type { Caller } from "../../../schemas/api/ManagementApi.ts"
import { type Authenticator, isStrong, keptFor } from "../Authenticators.ts"
import { ageOf, type Demand, satisfies } from "../StepUp.ts"

/** Credential actions need a sign-in of the last five minutes (docs/api/identity.md). */
const maxAgeSeconds = 300

/** Authenticators that a person may have. */
const most = 20

/** The demand on the sign-in: a person who has a second factor must have used it. */
export const demandOf = (owned: ReadonlyArray<Authenticator>): Demand & { readonly maxAgeSeconds: number } => ({
  maxAgeSeconds,
  aal: owned.some(isStrong) ? "aal2" : null,
})

const removes = (kind: ActionKind, { kind: of }: Authenticator) =>
  kind === "totp.remove" ? of === "totp" : kind === "passkey.remove" && (of === "passkey" || of === "security_key")

/** Whether an action of this kind can be about this authenticator. */
export const fits = (kind: ActionKind, one: Authenticator): boolean =>
  kind === "authenticator.rename" || removes(kind, one)

/** Why an action cannot be taken, on `target` where one is given; null: it can. */
export const unavailable = (
  kind: ActionKind,
  owned: ReadonlyArray<Authenticator>,
  target?: Authenticator,
): string | null => {
  if (kind === "passkey.register" || kind === "totp.enroll") return owned.length >= most ? "limit_reached" : null
  if (actionTable[kind].target !== "authenticator") return null
  const about = target === undefined ? owned.filter((one) => fits(kind, one)) : [target]
  if (about.length === 0) return "none_enrolled"
  if (kind === "authenticator.rename" || about.some((one) => keptFor(one, owned) === null)) return null
  return "last_authenticator"
}

/** The refusal of an action that cannot be taken, with what to do instead. */
export const refusedFor = (reason: string, target?: Authenticator) => {
  const named = target === undefined ? "It" : `'${target.label}' (${target.kind})`
  const says: Readonly<Record<string, string>> = {
    last_authenticator:
      `${named} is the last passkey, security key or one-time code: register another one, then remove it.`,
    limit_reached: `A person may have ${most} authenticators: remove one first.`,
    none_enrolled: "There is none that this could be about: enroll one first.",
  }
  const detail = says[reason]
  return new InvalidState({ state: reason, allowed: [], ...(detail === undefined ? {} : { detail }) })
}

type SignedIn = Pick<Caller["Service"], "authTime" | "aal" | "acr" | "amr" | "expiresAt">

const acrValues = ({ aal }: Demand) => aal === null ? [] : [acrOf(aal)]

export const capabilitiesOf = (
  caller: SignedIn,
  owned: ReadonlyArray<Authenticator>,
  millis: number,
  secondFactor: boolean,
): typeof Capabilities.Type => {
  const demand = demandOf(owned)
  return {
    actions: ActionKinds.literals.map((kind) => {
      const reason = unavailable(kind, owned)
      return {
        kind,
        available: reason === null,
        unavailable_reason: reason,
        acr_values: acrValues(demand),
        max_age_seconds: demand.maxAgeSeconds,
        satisfied: satisfies(caller, demand, millis),
        target: actionTable[kind].target,
        proof_type: actionTable[kind].proof,
      }
    }),
    intent_ttl_seconds: intentTtlSeconds,
    second_factor: secondFactor,
  }
}

/** `approvalMaxAge`: the maximum age of a sign-in for approvals, in seconds; null where approvals have none. */
export const freshnessOf = (
  caller: SignedIn,
  owned: ReadonlyArray<Authenticator>,
  approvalMaxAge: number | null,
  millis: number,
): Freshness => {
  const { authTime } = caller
  const at = (seconds: number) => new Date(seconds * 1_000).toISOString()
  const demand = demandOf(owned)
  const demands = [
    ...ActionKinds.literals.map((operation) => ({ operation: operation as string, demand })),
    ...(approvalMaxAge === null
      ? []
      : [{ operation: "approvals", demand: { maxAgeSeconds: approvalMaxAge, aal: null } }]),
  ]
  return {
    authenticated_at: authTime === null ? null : at(authTime),
    age_seconds: ageOf(caller, millis),
    acr: caller.acr,
    amr: caller.amr,
    aal: caller.aal,
    server_time: new Date(millis).toISOString(),
    token_expires_at: at(caller.expiresAt),
    fresh: satisfies(caller, { maxAgeSeconds, aal: null }, millis),
    fresh_until: authTime === null ? null : at(authTime + maxAgeSeconds),
    requirements: demands.map(({ demand, operation }) => ({
      operation,
      acr_values: acrValues(demand),
      max_age_seconds: demand.maxAgeSeconds,
      satisfied: satisfies(caller, demand, millis),
    })),
  }
}
