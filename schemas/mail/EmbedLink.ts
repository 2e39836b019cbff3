/** Links that show an account's webhooks in a frame, and the sessions that they open (docs/console.md). */
import { Schema } from "effect"
import { ConsoleSession } from "../identity/ConsoleSession.ts"
import { BodyIntOr } from "../Validation/Scalars.ts"
import { Timestamp } from "../Wire.ts"

export const NewEmbedLink = Schema.Struct({
  /** Seconds in which the link may be opened. */
  expires_in: BodyIntOr({ min: 60, max: 600 }, 300),
}).annotate({ identifier: "NewEmbedLink" })

export const EmbedLink = Schema.Struct({
  url: Schema.NullOr(Schema.String).annotate({
    description:
      "The address of the frame. Its fragment is a token that acts once; null where the request was repeated " +
      "under its Idempotency-Key, since no receipt keeps it",
  }),
  expires_at: Timestamp,
}).annotate({ identifier: "EmbedLink" })
export type EmbedLink = typeof EmbedLink.Type

export const NewEmbedSession = Schema.Struct({ token: Schema.String.check(Schema.isMaxLength(200)) })
  .annotate({ identifier: "NewEmbedSession" })

export const EmbedSession = Schema.Struct({
  token: Schema.String.annotate({ description: "A bearer for webhooks, deliveries and event types" }),
  session: ConsoleSession,
}).annotate({ identifier: "EmbedSession" })
