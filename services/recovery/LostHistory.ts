/**
 * Reads the lost history: messages of the stream LIFECYCLE whose events this database does not have. A message is
 * believed only by the signature of a key of this installation. The events are folded as any history is, so that only
 * the last state counts: what was revoked and then granted again is not revoked again.
 */
import { Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { compactVerify, decodeJwt, decodeProtectedHeader, importJWK, type JWK } from "jose"
import { ProjectId } from "../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../schemas/identity/LifecycleEventKinds.ts"
import { Uuid } from "../../schemas/Wire.ts"
import { Bus, type PastMessage } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import { type AppendedEvent, changesOf } from "../lifecycle/StateProjection.ts"
import type { LostPosition } from "./MissingMessages.ts"

type Value = ReturnType<typeof changesOf>[number]["value"]

/** One key of a project's state as the lost history left it, and the event that last changed it. */
export interface LostChange {
  readonly projectId: ProjectId
  readonly key: string
  readonly value: Value
  readonly event: AppendedEvent & { readonly id: string }
}

export interface Lost {
  readonly changes: ReadonlyArray<LostChange>
  /** The number of lost events. */
  readonly events: number
  /** Messages that no key of this installation verifies. */
  readonly unverifiable: number
  /** The positions of the lost events, each once. */
  readonly positions: ReadonlyArray<LostPosition>
  /** The highest epoch among the lost events. */
  readonly epoch: number
  /** Projects whose rollout failed since. */
  readonly failedRollouts: ReadonlySet<ProjectId>
  /** Keys that the lost history says are compromised. */
  readonly stolenKeys: ReadonlySet<string>
  /** Keys that signed lost events. */
  readonly keys: ReadonlySet<string>
}

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
const claimed = (token: string) => {
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

export const lostHistory = Effect.gen(function* () {
  const { sql } = yield* Database
  const bus = yield* Bus

  const unknownOf = (ids: ReadonlyArray<string>) =>
    Effect.map(
      sql<{ id: string }>`
        select t.id::text as id from unnest(${[...ids]}::uuid[]) t(id)
        where not exists (select from lifecycle_events e where e.id = t.id)`,
      (rows) => new Set(rows.map(({ id }) => id)),
    )

  const keyRing = Effect.flatMap(
    sql<{ kid: string; public_jwk: JWK }>`select kid, public_jwk from signing_keys`,
    (rows) =>
      Effect.forEach(
        rows,
        ({ kid, public_jwk }) => Effect.promise(async () => [kid, await importJWK(public_jwk, "RS256")] as const),
      ).pipe(
        Effect.map((entries) => new Map(entries)),
      ),
  )

  /** The history that was published since `sinceMillis` and is not known here. */
  const read = Effect.fn("LostHistory.read")(function* (sinceMillis: number) {
    const keys = yield* keyRing
    const changes = new Map<string, LostChange>()
    const failedRollouts = new Set<ProjectId>()
    const stolenKeys = new Set<string>()
    const used = new Set<string>()
    const positions = new Map<string, LostPosition>()
    let events = 0
    let epoch = 0
    let unverifiable = 0

    const verified = (token: string) =>
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

    const take = Effect.fnUntraced(function* (
      messages: ReadonlyArray<PastMessage>,
    ): Effect.fn.Return<void, SqlError.SqlError> {
      const texts = messages.map(({ data }) => new TextDecoder().decode(data))
      const read = texts.flatMap((token) => {
        const claims = claimed(token)
        if (claims === null) unverifiable++
        return claims === null ? [] : [{ ...claims, token }]
      })
      const unknown = yield* unknownOf(read.map(({ id }) => id))
      for (const { token, ...event } of read.filter(({ id }) => unknown.has(id))) {
        if (!(yield* verified(token))) {
          unverifiable++
          continue
        }
        used.add(String(decodeProtectedHeader(token).kid))
        events++
        const { id, kind, payload, at, projectId, subId } = event
        epoch = Math.max(epoch, at.epoch)
        const { digest, position, prev_digest: prevDigest } = at
        positions.set(digest, { projectId, epoch: at.epoch, position, digest, prevDigest })
        for (const { key, value } of changesOf(event)) {
          changes.set(`${projectId}\n${key}`, { projectId, key, value, event: { id, kind, subId, payload } })
        }
        if (JSON.stringify(payload["reason_admin"]) === `{"en":"ROLLOUT_FAILED"}`) failedRollouts.add(projectId)
        if (kind === "key-transition" && typeof payload["compromised"] === "string") {
          stolenKeys.add(payload["compromised"])
        }
      }
    })

    yield* bus.history("LIFECYCLE", sinceMillis, take)
    const found = { events, unverifiable, epoch, failedRollouts, stolenKeys, keys: used }
    return { ...found, changes: [...changes.values()], positions: [...positions.values()] } satisfies Lost
  })

  return { read }
})
