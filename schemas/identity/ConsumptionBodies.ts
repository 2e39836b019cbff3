/** The data that a service reads of a project's lifecycle, and its acknowledgements (docs/lifecycle.md). */
import { Schema } from "effect"
import { Text } from "../Validation/Scalars.ts"
import { Cursor } from "./Cursor.ts"

export const LifecycleEvents = Schema.Struct({
  items: Schema.Array(Schema.Struct({ position: Schema.Int, jti: Schema.String, set: Schema.String })),
  /** The cursor of the next page. */
  cursor: Schema.String,
  /** The project's last position. */
  head: Schema.Int,
  more: Schema.Boolean,
}).annotate({ identifier: "LifecycleEvents" })
export type LifecycleEvents = typeof LifecycleEvents.Type

/**
 * Sent after the commit of the product's own transaction, with the product's installed version and the chain's head.
 */
export const CursorAcknowledgement = Schema.Struct({
  cursor: Cursor,
  installed_version: Text(1, 200),
  chain_head: Text(1, 100),
}).annotate({ identifier: "LifecycleCursorAcknowledgement" })
export type CursorAcknowledgement = typeof CursorAcknowledgement.Type

export const Acknowledged = Schema.Struct({
  acknowledged_cursor: Schema.String,
  head: Schema.Int,
  /** Positions between what is acknowledged and the head. */
  lag: Schema.Int,
}).annotate({ identifier: "LifecycleAcknowledged" })
export type Acknowledged = typeof Acknowledged.Type
