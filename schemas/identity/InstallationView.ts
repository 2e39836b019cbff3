/** The state of the installation, as operators see it (docs/api/identity.md). */
import { Schema } from "effect"
import { Id, Timestamp } from "../Wire.ts"

const orNull = Schema.NullOr

export const InstallationState = Schema.Struct({
  epoch: Schema.Int,
  state: Schema.Literals(["open", "held"]),
  /** When and why it is held; all null while it is open. */
  held_since: orNull(Timestamp),
  held_reason: orNull(Schema.String),
  says: orNull(Schema.String),
  /** The action that ends it; null where there is nothing to do. */
  remedy: orNull(Schema.String),
  /** Decisions since this time may be lost; null while it is open. */
  lost_since: orNull(Timestamp),
  /** Messages of the lost time that are no longer on the broker. */
  missing: Schema.Array(Schema.Struct({
    stream: Schema.String,
    /** Null where `first` and `last` are sequences of the stream, not positions of a project's history. */
    project_id: orNull(Id),
    epoch: orNull(Schema.Int),
    first: Schema.Int,
    last: Schema.Int,
  })),
  /** When it was last opened; null where it was never held. */
  opened_at: orNull(Timestamp),
}).annotate({ identifier: "InstallationState" })
export type InstallationState = typeof InstallationState.Type
