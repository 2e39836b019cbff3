/**
 * A signed snapshot: the fold of a project's events up to its cursor, head and state read in one view of the database, so
 * that going on from its cursor misses and repeats nothing.
 */
import { Clock, Effect } from "effect"
import { encodeCursor } from "../../schemas/identity/Cursor.ts"
import { digestOf, genesis } from "../platform/Canonical.ts"
import { Database } from "../platform/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { audienceOf, lifecycleIssuer } from "./Messages.ts"
import { SigningKeys } from "./SigningKeys.ts"

interface Row {
  readonly key: string
  readonly value: unknown
}

const groups = [
  "people",
  "access",
  "sessions_floor",
  "sessions",
  "identities",
  "owners",
  "service_grants",
  "reviews",
] as const

const groupOf: Readonly<Record<string, (typeof groups)[number]>> = {
  person: "people",
  access: "access",
  sessions_floor: "sessions_floor",
  session: "sessions",
  identity: "identities",
  owner: "owners",
  service_grant: "service_grants",
  review: "reviews",
}

/** The state as a product reads it: lists by what they are about, and what there is one of. */
const stateOf = (rows: ReadonlyArray<Row>) => {
  const lists = Object.fromEntries(groups.map((group) => [group, [] as Array<unknown>]))
  const single: Record<string, unknown> = { project: null, keys: null }
  for (const { key, value } of rows) {
    const [head] = key.split("/", 1)
    const group = groupOf[head!]
    if (group === undefined) single[head!] = value
    else lists[group]!.push(value)
  }
  return { ...lists, ...single }
}

/** Makes the snapshot of a project: a compact JWS of type `lifecycle-snapshot+jwt`. */
export const snapshots = Effect.fnUntraced(function* (publicUrl: URL) {
  const { wide } = yield* Database
  const ids = yield* Ids
  const keys = yield* SigningKeys
  const issuer = lifecycleIssuer(publicUrl)

  const read = (projectId: string) =>
    wide.withTransaction(Effect.gen(function* () {
      yield* wide`set transaction isolation level repeatable read, read only`
      const [head] = yield* wide<{ epoch: number; position: bigint; digest: string }>`
        select epoch, position, digest from lifecycle_heads where project_id = ${projectId}`
      const rows = yield* wide<Row>`
        select key, value from lifecycle_state where project_id = ${projectId} order by key collate "C"`
      return { head: head ?? { epoch: 1, position: 0n, digest: genesis }, rows }
    }))

  return Effect.fn("Snapshots.make")(function* (projectId: string) {
    const { head, rows } = yield* read(projectId)
    const signer = yield* keys.signerOf(projectId)
    const state = stateOf(rows)
    const claims = {
      iss: issuer,
      aud: audienceOf(projectId),
      iat: Math.floor((yield* Clock.currentTimeMillis) / 1000),
      jti: yield* ids.next,
      project_id: projectId,
      epoch: head.epoch,
      position: Number(head.position),
      cursor: encodeCursor({ epoch: head.epoch, position: Number(head.position) }),
      chain_head: head.digest,
      state_digest: digestOf(state),
      key_set: yield* keys.keySet,
      state,
    }
    return yield* Effect.promise(() => signer.sign("lifecycle-snapshot+jwt", JSON.stringify(claims)))
  })
})
