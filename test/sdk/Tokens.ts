/** Builds signed messages, valid and forged: keys, chained histories, snapshots. */
import { calculateJwkThumbprint, CompactSign, exportJWK, type JWK } from "jose"
import { randomUUID } from "node:crypto"
import { digestOf, genesis, type Json, sha256 } from "../../sdk/Canonical.ts"
import { keyCache } from "../../sdk/Keys.ts"
import { Refusal, type RefusalStep } from "../../sdk/Refusal.ts"
import { type Pins, verifyEvent } from "../../sdk/Verify.ts"
import type { RsaKeyPair } from "../../services/platform/security/RsaKeyPairs.ts"
import { nextRsaKey, rsaKeyNamed } from "../support/TestRsaKeys.ts"

export const issuer = "https://id.example/lifecycle"
export const projectId = "project-1"
export const audience = `urn:bailiwick:project:${projectId}`
export const now = 1_795_222_800

export const own = (name: string) => `https://schemas.bailiwick.dev/secevent/lifecycle/event-type/${name}`

export interface SigningKey {
  readonly kid: string
  readonly jwk: JWK
  readonly sign: (payload: unknown, header?: Readonly<Record<string, unknown>>) => Promise<string>
}

const signingKey = async ({ privateKey, publicKey }: RsaKeyPair): Promise<SigningKey> => {
  const jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(jwk)
  return {
    kid,
    jwk: { ...jwk, kid },
    sign: (payload, header = {}) =>
      new CompactSign(new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload)))
        .setProtectedHeader({ alg: "RS256", typ: "secevent+jwt", kid, ...header }).sign(privateKey),
  }
}

/** A key that the test file did not get before. */
export const makeKey = () => signingKey(nextRsaKey())

/** The key with this name. */
export const keyOf = (name: string) => signingKey(rsaKeyNamed(name))

/** Pins for `kids`, with a transmitter that serves `served`. */
export const pinsTo = (kids: ReadonlyArray<string>, served: ReadonlyArray<JWK>): Pins => ({
  issuer,
  audience,
  keys: keyCache(() => Promise.resolve({ keys: served }))(kids),
  now: () => now,
})

export interface EventInput {
  readonly type: string
  readonly subId: Json
  readonly payload: { readonly [name: string]: Json }
}

export const personNamed = (subject: string): Json => ({
  format: "complex",
  user: { format: "iss_sub", iss: "https://id.example", sub: subject },
  application: { format: "opaque", id: projectId },
  tenant: { format: "opaque", id: "institution-1" },
})

export const granted = (subject: string, accessId = `access-${subject}`): EventInput => ({
  type: own("access-granted"),
  subId: personNamed(subject),
  payload: {
    event_timestamp: now,
    initiating_entity: "admin",
    access: { access_id: accessId, version: 1, role: "user" },
  },
})

export const revoked = (subject: string): EventInput => ({
  ...granted(subject),
  type: own("access-revoked"),
})

/** The claims of a history's events, each chained to the one before. */
export const chained = (inputs: ReadonlyArray<EventInput>, epoch = 1, prev = genesis, first = 1) => {
  let prevDigest = prev
  return inputs.map(({ payload, subId, type }, i) => {
    const position = first + i
    const body = digestOf({ sub_id: subId, events: { [type]: payload } })
    const digest = sha256(`${prevDigest}\n${epoch}\n${position}\n${body}`)
    const lifecycle = { epoch, position, cursor: `c${position}`, digest, prev_digest: prevDigest }
    prevDigest = digest
    return {
      iss: issuer,
      aud: audience,
      iat: now,
      jti: randomUUID(),
      txn: randomUUID(),
      sub_id: subId,
      events: { [type]: { ...payload, lifecycle } },
    }
  })
}

/** The claims of a snapshot. */
export const snapshotOf = (
  state: { readonly [group: string]: Json },
  at: { readonly epoch?: number; readonly position: number; readonly chainHead: string },
  keySet: ReadonlyArray<string>,
) => ({
  iss: issuer,
  aud: audience,
  iat: now,
  jti: randomUUID(),
  project_id: projectId,
  epoch: at.epoch ?? 1,
  position: at.position,
  cursor: `c${at.position}`,
  chain_head: at.chainHead,
  state_digest: digestOf(state),
  key_set: keySet,
  state,
})

/** The step at which a token is refused as an event, or "verified"; throws any other error. */
export const stepOf = async (token: string, pins: Pins): Promise<RefusalStep | "verified"> => {
  const error: unknown = await verifyEvent(token, pins).then(() => null, (error) => error)
  if (error === null) return "verified"
  if (error instanceof Refusal) return error.step
  throw error
}
