/**
 * The keys that sign lifecycle messages: RSA, RS256, apart from the keys that sign OIDC tokens (docs/keys.md). A kid is
 * the RFC 7638 thumbprint. Private keys are sealed by the Vault.
 *
 * An installation begins with one active key and the two keys after it, announced by their thumbprints before they are
 * used: a consumer accepts only a kid that it had committed earlier. The project and the position in its history decide
 * which key signs (`lifecycle_key_places`), the same in every process: a project begins with the key that is active
 * when its first message is signed, and `KeyRotation` moves the project on. A compromised key signs nothing more; the
 * next key signs the events that it had not signed yet.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { JWK } from "jose"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { Vault } from "../platform/security/Vault.ts"
import { type KeyState, keyStore, lockKeys, makePair, type Signer } from "./Keys/KeyGeneration.ts"

export type { KeyState, Signer } from "./Keys/KeyGeneration.ts"

/** A position in a project's history. */
export interface ProjectPosition {
  readonly project_id: ProjectId
  readonly epoch: number
  readonly position: bigint
}

interface KeyStart extends ProjectPosition {
  readonly kid: string
  readonly usable: boolean
}

const notAfter = (a: ProjectPosition, b: ProjectPosition) =>
  a.epoch < b.epoch || a.epoch === b.epoch && a.position <= b.position

export class SigningKeys extends Context.Service<SigningKeys, {
  /** Makes the first keys where there are none. */
  readonly ensure: Effect.Effect<void, SqlError.SqlError>
  /** The key that signs now what is no part of a project's history: snapshots, and messages of single streams. */
  readonly signerOf: (projectId: ProjectId) => Effect.Effect<Signer, SqlError.SqlError>
  /** The installation's active key, which signs what belongs to no project: packs of evidence. */
  readonly active: Effect.Effect<Signer, SqlError.SqlError>
  /**
   * The keys that sign the events at these positions, in their order. Null: the key was stolen and the project has not
   * switched to the next key yet; then it is null for all later positions of the project as well.
   */
  readonly signersOf: (
    positions: ReadonlyArray<ProjectPosition>,
  ) => Effect.Effect<ReadonlyArray<Signer | null>, SqlError.SqlError>
  /**
   * Locks these keys to the end of the current transaction, so that they stay usable; returns whether all of them are.
   */
  readonly holdUsable: (kids: ReadonlyArray<string>) => Effect.Effect<boolean, SqlError.SqlError>
  /** The keys that `/v1/lifecycle/jwks` serves: in use, about to be used, or still verifying. */
  readonly jwks: Effect.Effect<{ readonly keys: ReadonlyArray<JWK> }, SqlError.SqlError>
  /** The kids that a consumer may commit to: in use, still verifying, or announced. */
  readonly keySet: Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/SigningKeys") {
  static readonly layer = Layer.effect(
    SigningKeys,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { add, opened, signer } = keyStore(sql, yield* Vault)
      yield* counted("lifecycle signers", opened)

      const begun = Effect.map(
        sql<{ begun: boolean }>`select exists (select from signing_keys where state = 'active') as begun`,
        ([row]) => row!.begun,
      )

      const ensure = Effect.gen(function* () {
        if (yield* begun) return
        const [first, ...next] = yield* Effect.all([makePair, makePair, makePair])
        yield* sql.withTransaction(Effect.gen(function* () {
          yield* lockKeys(sql)
          if (yield* begun) return
          yield* add("active", first)
          for (const pair of next) yield* add("announced", pair)
        }))
      }).pipe(Effect.withSpan("SigningKeys.ensure"))

      /**
       * Gives projects their first key. The active key is locked meanwhile, so that a project either has it before the
       * key stops being active, and is switched like the others, or gets the next key.
       */
      const begin = (projectIds: ReadonlyArray<ProjectId>, since: Date) =>
        sql`
          with key as materialized (
            select kid from signing_keys where state = 'active' for share
          ), bound as (
            insert into lifecycle_project_keys (project_id, kid, news_id, told_epoch, told_position)
            select p.id, key.kid, coalesce((select max(id) from lifecycle_key_news), 0), 0, 0
            from unnest(${[...projectIds]}::text[]) p(id) cross join key order by p.id
            on conflict do nothing returning project_id, kid
          )
          insert into lifecycle_key_places (project_id, epoch, position, kid, since)
          select project_id, 0, 0, kid, ${since} from bound`

      const bind = Effect.fnUntraced(function* (projectIds: ReadonlyArray<ProjectId>) {
        yield* ensure
        yield* begin(projectIds, new Date(yield* Clock.currentTimeMillis))
      })

      const keyStarts = (projectIds: ReadonlyArray<ProjectId>) =>
        Effect.map(
          sql<KeyStart>`
            select p.project_id, p.epoch, p.position, p.kid, k.private_key is not null as usable
            from lifecycle_key_places p join signing_keys k on k.kid = p.kid
            where p.project_id = any(${[...projectIds]}::text[]) order by p.project_id, p.epoch, p.position`,
          (rows) => Map.groupBy(rows, ({ project_id }) => project_id),
        )

      const signersOf = Effect.fn("SigningKeys.signersOf")(function* (positions: ReadonlyArray<ProjectPosition>) {
        const projects = [...new Set(positions.map(({ project_id }) => project_id))]
        let known = yield* keyStarts(projects)
        // Repeated where the active key stopped being active in between.
        while (known.size < projects.length) {
          yield* bind(projects.filter((id) => !known.has(id)))
          known = yield* keyStarts(projects)
        }
        return yield* Effect.forEach(positions, (position) => {
          const own = known.get(position.project_id)!
          const at = own.findLastIndex((from) => notAfter(from, position))
          const found = own.slice(Math.max(0, at)).find(({ usable }) => usable)
          return found === undefined ? Effect.succeed(null) : signer(found.kid)
        })
      })

      /**
       * The project's own key; where that was stolen and the project has not switched yet, the installation's active
       * key.
       */
      const current = Effect.fnUntraced(function* (projectId: ProjectId) {
        const [row] = yield* sql<{ kid: string }>`
          select coalesce(k.kid, a.kid) as kid from lifecycle_project_keys p
          join signing_keys a on a.state = 'active'
          left join signing_keys k on k.kid = p.kid and k.private_key is not null
          where p.project_id = ${projectId}`
        return row === undefined ? null : yield* signer(row.kid)
      })

      const signerOf = Effect.fn("SigningKeys.signerOf")(function* (projectId: ProjectId) {
        for (;;) {
          const found = yield* current(projectId)
          if (found !== null) return found
          yield* bind([projectId])
        }
      })

      const active = Effect.gen(function* () {
        yield* ensure
        for (;;) {
          const [row] = yield* sql<{ kid: string }>`select kid from signing_keys where state = 'active'`
          // Null where the key was reported stolen in between: the next one is active then.
          const found = row === undefined ? null : yield* signer(row.kid)
          if (found !== null) return found
        }
      }).pipe(Effect.withSpan("SigningKeys.active"))

      const inStates = (...states: ReadonlyArray<KeyState>) =>
        sql<{ kid: string; public_jwk: JWK }>`
          select kid, public_jwk from signing_keys where state = any(${[...states]}::text[]) order by succession`

      return SigningKeys.of({
        ensure,
        active,
        signerOf,
        signersOf,
        holdUsable: (kids) =>
          Effect.map(
            sql`select kid from signing_keys
              where kid = any(${[...kids]}::text[]) and private_key is not null order by kid for share`,
            (rows) => rows.length === new Set(kids).size,
          ),
        jwks: Effect.map(inStates("published", "active", "retiring"), (rows) => ({
          keys: rows.map(({ public_jwk }) => public_jwk),
        })),
        keySet: Effect.map(
          inStates("announced", "published", "active", "retiring"),
          (rows) => rows.map(({ kid }) => kid),
        ),
      })
    }),
  )
}
