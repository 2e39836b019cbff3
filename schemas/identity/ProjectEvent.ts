/** The events of a project's lifecycle, decoded: what its products are told (docs/api/identity.md). */
import { Schema } from "effect"
import { Id, Timestamp } from "../Wire.ts"

const Members = Schema.Record(Schema.String, Schema.Unknown)

export const ProjectEvent = Schema.Struct({
  event_id: Id,
  epoch: Schema.Int,
  position: Schema.Int,
  kind: Schema.String.annotate({ examples: ["access-granted"] }),
  event_type: Schema.String.annotate({ description: "The event's URI in the signed message" }),
  subject: Members.annotate({ description: "The message's `sub_id`" }),
  details: Members.annotate({ description: "The members of the event, without the ones that all events have" }),
  recorded_at: Timestamp,
  signed_at: Schema.NullOr(Timestamp).annotate({ description: "Null until the event is signed, and so can be read" }),
}).annotate({ identifier: "ProjectEvent" })
export type ProjectEvent = typeof ProjectEvent.Type

export const ProjectEvents = Schema.Struct({ items: Schema.Array(ProjectEvent) })
  .annotate({ identifier: "ProjectEvents" })
export type ProjectEvents = typeof ProjectEvents.Type
