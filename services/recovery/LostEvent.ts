/** Reads a lifecycle message of the lost time, and believes it only by the signature of a key of this installation. */
import { Effect, Option, Schema } from "effect"
import { compactVerify, decodeJwt, decodeProtectedHeader, importJWK, type JWK } from "jose"
import { ProjectId } from "../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../schemas/identity/LifecycleEventKinds.ts"
import { Uuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"

const Claims = Schema.Struct({
  jti: Uuid,
  aud: Schema.String,
  sub_id: Schema.Json,
  events: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)),
})
const claimsOf = Schema.decodeUnknownOption(Claims)
const Position = Schema.Struct({
  epoch: Schema.Int,
  position: Schema.Int,
  digest: Schema.String,
  prev_digest: Schema.String,
})
const positionOf = Schema.decodeUnknownOption(Position)
const audience = "urn:bailiwick:project:"
const kinds = new Map<string, LifecycleEventKind>(
  Object.entries(lifecycleEventKinds).map(([kind, { uri }]) => [uri, kind as LifecycleEventKind]),
)

/** The claims of a message, not verified yet; null where it is no lifecycle message. */
export const claimed = (token: string) => {
  try {
    const claims = Option.getOrNull(claimsOf(decodeJwt(token)))
    const [entry] = Object.entries(claims?.events ?? {})
    const kind = kinds.get(entry?.[0] ?? "")
    if (claims === null || entry === undefined || kind === undefined || !claims.aud.startsWith(audience)) return null
    const { lifecycle, ...payload } = entry[1]
    const at = Option.getOrNull(positionOf(lifecycle))
    if (at === null) return null
    const projectId = ProjectId.make(claims.aud.slice(audience.length))
    return { id: claims.jti, projectId, at, kind, subId: claims.sub_id, payload } as const
  } catch {
    return null
  }
}

/** Whether a key of this installation signed a message; reads the keys once. */
export const ownSignatures = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ kid: string; public_jwk: JWK }>`select kid, public_jwk from signing_keys`
  const keys = new Map(
    yield* Effect.forEach(
      rows,
      ({ kid, public_jwk }) => Effect.promise(async () => [kid, await importJWK(public_jwk, "RS256")] as const),
    ),
  )
  return (token: string) =>
    Effect.promise(async () => {
      try {
        const key = keys.get(String(decodeProtectedHeader(token).kid))
        if (key === undefined) return false
        const { protectedHeader } = await compactVerify(token, key, { algorithms: ["RS256"] })
        return protectedHeader.typ === "secevent+jwt"
      } catch {
        return false
      }
    })
})
