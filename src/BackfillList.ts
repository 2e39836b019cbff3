/**
 * The backfills of this version (docs/upgrading.md), in the order in which they are worked off. One is taken out of the
 * list in the release after the migration that needs it; until then that migration names it.
 */
import { Context } from "effect"
import type { Backfill } from "../services/platform/database/Backfills.ts"

export const backfills: ReadonlyArray<Backfill> = []

/** The list, which tests of a whole program fill. */
export class BackfillList extends Context.Reference<ReadonlyArray<Backfill>>("bailiwick/src/BackfillList", {
  defaultValue: () => backfills,
}) {}
