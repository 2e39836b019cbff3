/**
 * Reads the lost history: messages of the stream LIFECYCLE whose events this database does not have. A message is
 * believed only by the signature of a key of this installation. The events are folded as any history is, so that only
 * the last state counts: what was revoked and then granted again is not revoked again.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { decodeProtectedHeader } from "jose"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import type { PastMessage } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import type { InstallationRow } from "../platform/database/Installation.ts"
import { type AppendedEvent, changesOf } from "../lifecycle/StateProjection.ts"
import { claimed, ownSignatures } from "./LostEvent.ts"
import type { LostPosition } from "./MissingMessages.ts"
import { suppliedHistory } from "./SuppliedHistory.ts"

type Value = ReturnType<typeof changesOf>[number]["value"]

/** One key of a project's state as the lost history left it, and the event that last changed it. */
export interface LostChange {
  readonly projectId: ProjectId
  readonly key: string
  readonly value: Value
  readonly at: { readonly epoch: number; readonly position: number }
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

const isBefore = (one: LostChange["at"], other: LostChange["at"]) =>
  one.epoch === other.epoch ? one.position < other.position : one.epoch < other.epoch

export const lostHistory = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const history = yield* suppliedHistory

  const unknownOf = (ids: ReadonlyArray<string>) =>
    Effect.map(
      sql<{ id: string }>`
        select t.id::text as id from unnest(${[...ids]}::uuid[]) t(id)
        where not exists (select from lifecycle_events e where e.id = t.id)`,
      (rows) => new Set(rows.map(({ id }) => id)),
    )

  /** The history that was published since `sinceMillis`, or supplied, and is not known here. */
  const read = Effect.fn("LostHistory.read")(function* (
    sinceMillis: number,
    { lost_from_epoch, streams }: InstallationRow,
  ) {
    const from = lost_from_epoch ?? 0
    const verified = yield* Effect.provideService(ownSignatures, Database, database)
    const changes = new Map<string, LostChange>()
    const failedRollouts = new Set<ProjectId>()
    const stolenKeys = new Set<string>()
    const used = new Set<string>()
    const positions = new Map<string, LostPosition>()
    let events = 0
    let epoch = 0
    let unverifiable = 0

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
        // Looked at before the installation opened in a later epoch; some of it may be given back since.
        if (event.at.epoch < from) continue
        used.add(String(decodeProtectedHeader(token).kid))
        events++
        const { id, kind, payload, at, projectId, subId } = event
        epoch = Math.max(epoch, at.epoch)
        const { digest, position, prev_digest: prevDigest } = at
        positions.set(digest, { projectId, epoch: at.epoch, position, digest, prevDigest })
        for (const { key, value } of changesOf(event)) {
          const name = `${projectId}\n${key}`
          const later = changes.get(name)?.at
          // A supplied event may be read after a later one.
          if (later !== undefined && isBefore(at, later)) continue
          changes.set(name, { projectId, key, value, at, event: { id, kind, subId, payload } })
        }
        if (JSON.stringify(payload["reason_admin"]) === `{"en":"ROLLOUT_FAILED"}`) failedRollouts.add(projectId)
        if (kind === "key-transition" && typeof payload["compromised"] === "string") {
          stolenKeys.add(payload["compromised"])
        }
      }
    })

    yield* history.read("LIFECYCLE", { sinceMillis, streams }, take)
    const found = { events, unverifiable, epoch, failedRollouts, stolenKeys, keys: used }
    return { ...found, changes: [...changes.values()], positions: [...positions.values()] } satisfies Lost
  })

  return { read }
})
