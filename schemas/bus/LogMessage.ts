/** A checkpoint of the transparency log on the stream DECISION_LOG (docs/transparency.md). */
import { Schema } from "effect"

/** The subject of all checkpoints. */
export const logSubject = "log.v1.checkpoint"

const Hash = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9+/]{43}=$/))
const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Hashes are 32 bytes in base64. No entry says what was decided. */
export const CheckpointMessage = Schema.Struct({
  origin: Schema.String,
  size: Size,
  root: Hash,
  /** The signed note, without lines of witnesses. */
  checkpoint: Schema.String,
  /** The index of the first of `entries`: the size of the checkpoint before. */
  first: Size,
  /** The entries since the checkpoint before. */
  entries: Schema.Array(Hash),
}).annotate({ identifier: "CheckpointMessage" })

export type CheckpointMessage = typeof CheckpointMessage.Type
