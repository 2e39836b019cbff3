/** The end of an Access: how it is asked for, and brought forward (docs/api/identity.md). */
import { Schema } from "effect"
import { AccessId, InstitutionId, ProjectId } from "../BrandedIds.ts"
import { BodyInt } from "../Validation/Scalars.ts"
import { AskedTime, Timestamp } from "../Wire.ts"
import { DecisionReason } from "./DecisionReason.ts"

/** A request for Access until a time, or for a later end of an Access that has one. */
export const TemporaryAccessCreate = Schema.Struct({
  reason: DecisionReason,
  institution_id: InstitutionId,
  project_id: ProjectId,
  ends_at: AskedTime,
}).annotate({ identifier: "TemporaryAccessCreate" })
export type TemporaryAccessCreate = typeof TemporaryAccessCreate.Type

export const AccessShortening = Schema.Struct({
  expected_version: BodyInt({ min: 1 }),
  ends_at: AskedTime,
  reason: DecisionReason,
}).annotate({ identifier: "AccessShortening" })
export type AccessShortening = typeof AccessShortening.Type

export const AccessEnd = Schema.Struct({ access_id: AccessId, access_version: Schema.Int, ends_at: Timestamp })
  .annotate({ identifier: "AccessEnd" })
export type AccessEnd = typeof AccessEnd.Type
