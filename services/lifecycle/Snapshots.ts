/**
 * Signed snapshots: the fold of a project's events up to a cursor. Head and state are read in one snapshot of the
 * database, so a consumer that goes on from the cursor misses and repeats nothing.
 *
 * The state is read and written row by row and never held as a whole. A state of up to a mebibyte is a part of the
 * message (`state`); for a larger state the message is a manifest that names its pieces (`parts`), which are kept for a
 * day and fetched by their digest. Either way `state_digest` is that of the state's canonical JSON.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { encodeCursor } from "../../schemas/identity/Cursor.ts"
import { genesis } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { audienceOf, lifecycleIssuer } from "./EventSigner.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { type Piece, piecesOf, type Row } from "./SnapshotParts.ts"

interface Head {
  readonly epoch: number
  readonly position: bigint
  readonly digest: string
}

const rowsAtOnce = 2_000
const inlineBytes = 1024 * 1024

/** The path under which a part is fetched. */
const hrefOf = (projectId: ProjectId, digest: string): string =>
  `/v1/projects/${encodeURIComponent(projectId)}/lifecycle/snapshot/parts/${digest}`

/** Makes snapshots of a project, each a compact JWS of type `lifecycle-snapshot+jwt`, and returns their parts. */
export const snapshots = Effect.fnUntraced(function* (publicUrl: URL) {
  const { sql, wide } = yield* Database
  const ids = yield* Ids
  const keys = yield* SigningKeys
  const issuer = lifecycleIssuer(publicUrl)

  /** Stores a part, or, where an earlier snapshot stored it, keeps it for another day. */
  const keep = Effect.fnUntraced(function* (projectId: ProjectId, { digest, text }: Piece) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const known = yield* sql`
      update lifecycle_snapshot_parts set named_at = greatest(named_at, ${now})
      where project_id = ${projectId} and digest = ${digest} returning 1`
    if (known.length > 0) return
    yield* sql`
      insert into lifecycle_snapshot_parts (project_id, digest, content, named_at)
      values (${projectId}, ${digest}, ${text}, ${now})
      on conflict (project_id, digest) do update set named_at = excluded.named_at`
  })

  const read = (projectId: ProjectId) =>
    wide.withTransaction(Effect.gen(function* () {
      yield* wide`set transaction isolation level repeatable read, read only`
      const [head] = yield* wide<Head>`
        select i.epoch, 0::bigint as position, ${genesis} as digest from installation i
        where not exists (select from lifecycle_heads where project_id = ${projectId})
        union all
        select epoch, position, digest from lifecycle_heads where project_id = ${projectId}`
      const writer = piecesOf()
      const parts: Array<Omit<Piece, "text">> = []
      /** The pieces so far, as long as they are small enough for the message itself. */
      let small: Array<Piece> = []
      let bytes = 0

      const put = Effect.fnUntraced(function* (pieces: ReadonlyArray<Piece>) {
        for (const piece of pieces) {
          bytes += piece.bytes
          parts.push({ digest: piece.digest, bytes: piece.bytes })
          small.push(piece)
          if (bytes <= inlineBytes) continue
          for (const large of small) yield* keep(projectId, large)
          small = []
        }
      })

      let after = ""
      for (;;) {
        const rows = yield* wide<Row>`
          select key, value from lifecycle_state where project_id = ${projectId} and key > ${after}
          order by key limit ${rowsAtOnce}`
        for (const row of rows) yield* put(writer.add(row))
        if (rows.length < rowsAtOnce) break
        after = rows.at(-1)!.key
      }
      const { digest, pieces } = writer.end()
      yield* put(pieces)
      const inline = bytes <= inlineBytes ? small.map(({ text }) => text).join("") : null
      return { head: head!, digest, parts, inline }
    }))

  const make = Effect.fn("Snapshots.make")(function* (projectId: ProjectId) {
    const { digest, head: { epoch, position, digest: chainHead }, inline, parts } = yield* read(projectId)
    const signer = yield* keys.signerOf(projectId)
    const at = { epoch, position: Number(position) }
    const claims = JSON.stringify({
      iss: issuer,
      aud: audienceOf(projectId),
      iat: Math.floor((yield* Clock.currentTimeMillis) / 1000),
      jti: yield* ids.next,
      project_id: projectId,
      ...at,
      cursor: encodeCursor(at),
      chain_head: chainHead,
      state_digest: digest,
      key_set: yield* keys.keySet,
      ...(inline === null ? { parts: parts.map((part) => ({ ...part, href: hrefOf(projectId, part.digest) })) } : {}),
    })
    const payload = inline === null ? claims : `${claims.slice(0, -1)},"state":${inline}}`
    return yield* Effect.promise(() => signer.sign("lifecycle-snapshot+jwt", payload))
  })

  /** A part by its digest; null where it is no longer kept. */
  const part = Effect.fn("Snapshots.part")(function* (projectId: ProjectId, digest: string) {
    const [row] = yield* sql<{ content: string }>`
      select content from lifecycle_snapshot_parts where project_id = ${projectId} and digest = ${digest}`
    return row?.content ?? null
  })

  return { make, part }
})
