/**
 * The history of every Access. A changed role or state, or a removal (revoked), is a new version: an immutable row and
 * its grant Event, in the transaction of the change, whatever caused it. Versions count from 1 for each Access,
 * independent of the feed's own versions.
 *
 * The history follows the row of `access`: `settle` compares the row with its last version and writes what is missing.
 * An Access whose person is not known yet has no version and is not effective; it gets a version when the person
 * arrives. An Access that moved to another person or project is first revoked where it was.
 *
 * `digest` is the digest of the version in canonical JSON: the columns of access_versions except `digest`, with
 * `created_at` as RFC 3339 with milliseconds.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId } from "../../schemas/BrandedIds.ts"
import type { InTransaction, UnitOfWork } from "../platform/database/UnitOfWork.ts"
import { granting } from "./AccessVersions/GrantAccess.ts"
import { recording } from "./AccessVersions/RecordDecision.ts"
import { settling } from "./AccessVersions/SettleVersion.ts"
import type { AccessDecision, AccessVersion, Holder, Makers } from "./AccessVersions/VersionRows.ts"

export type { AccessDecision, Holder } from "./AccessVersions/VersionRows.ts"

export class AccessVersions extends Context.Service<AccessVersions, {
  /**
   * Writes a decision that was made here, in the current transaction: the Access (which the feed cannot undo until it
   * has sent the same), its version and its grant Event. A decision that changes nothing returns the current version.
   * The person must be known.
   */
  readonly record: (decision: AccessDecision) => Effect.Effect<AccessVersion, SqlError.SqlError, InTransaction>
  /**
   * Writes a new Access, its first version and its grant Event, as a part of a command of two round trips
   * (FencedCommand.ts). The caller has fenced the holder, and that the holder has no Access yet.
   */
  readonly grant: (
    decision: AccessDecision,
    holder: Holder,
  ) => Effect.Effect<AccessVersion, SqlError.SqlError, UnitOfWork>
  /**
   * Writes the missing version of an Access whose row the caller has locked; returns the current version, or null where
   * the Access has none and needs none yet.
   */
  readonly settle: (
    accessId: AccessId,
    makers?: Makers,
  ) => Effect.Effect<AccessVersion | null, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/access/AccessVersions") {
  static readonly layer = Layer.effect(
    AccessVersions,
    Effect.gen(function* () {
      const settle = yield* settling
      return AccessVersions.of({ record: yield* recording(settle), grant: yield* granting, settle })
    }),
  )
}
