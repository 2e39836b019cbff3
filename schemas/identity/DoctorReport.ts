/** The doctor's findings (docs/api/identity.md). */
import { Schema } from "effect"
import { Timestamp } from "../Wire.ts"

const DoctorLevel = Schema.Literals(["fail", "warn", "ok"]).annotate({ identifier: "DoctorLevel" })

export const DoctorFinding = Schema.Struct({
  level: DoctorLevel,
  /** The subject of the check, in one or two words. */
  subject: Schema.String,
  /** The finding. */
  says: Schema.String,
  /** The remedy; null where there is nothing to do. */
  remedy: Schema.NullOr(Schema.String),
  /**
   * Since when a look has found the subject not to be fine; null where it is fine, and for the process that answers and
   * its variables.
   */
  since: Schema.NullOr(Timestamp),
  /**
   * What waits or failed by the hour in which it came to be: 24 numbers, the hour that ends now last. Null where the
   * subject is fine, or is not counted so.
   */
  hours: Schema.NullOr(Schema.Array(Schema.Int)),
  /** Whether `hours` may lack some: 10,000 rows of a subject are read at most. */
  hours_capped: Schema.Boolean,
}).annotate({ identifier: "DoctorFinding" })

export const DoctorReport = Schema.Struct({
  as_of: Timestamp,
  /** The worst level of the findings. */
  level: DoctorLevel,
  /** Failures first, then warnings, then what is fine. */
  items: Schema.Array(DoctorFinding),
}).annotate({ identifier: "DoctorReport" })
export type DoctorReport = typeof DoctorReport.Type
