/** Failures of streams (Shared Signals Framework 1.0, 8.1), beside those of HttpProblems.ts. */
import { Schema } from "effect"
import { Problem } from "./Problem.ts"

/**
 * The service's grant lacks this capability, or there is no grant. `scope`, the capability, is repeated in the
 * challenge.
 */
export class CapabilityRequired extends Problem<CapabilityRequired>()(
  "CapabilityRequired",
  "role_required",
  403,
  "The service lacks the grant that this needs",
  { scope: Schema.String },
) {}

/** A service that may manage streams of several projects names one of them by its audience. */
export class AudienceRequired extends Problem<AudienceRequired>()(
  "AudienceRequired",
  "audience_required",
  400,
  "The audience has to be named",
  { audiences: Schema.Array(Schema.String) },
) {}

/** `properties` are supplied by the transmitter, with other values than were sent. */
export class SuppliedMismatch extends Problem<SuppliedMismatch>()(
  "SuppliedMismatch",
  "supplied_mismatch",
  400,
  "A property that the transmitter supplies is another one",
  { properties: Schema.Array(Schema.String) },
) {}

export class StreamLimit extends Problem<StreamLimit>()(
  "StreamLimit",
  "stream_limit",
  409,
  "The receiver's number of streams for this project is reached",
) {}

export class SubjectLimit extends Problem<SubjectLimit>()(
  "SubjectLimit",
  "subject_limit",
  403,
  "The stream's number of subjects is reached",
) {}
