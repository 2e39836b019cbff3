/** `--events`: types of email events. */
import { Flag } from "effect/cli"
import { type EventType, eventTypes } from "../../../schemas/mail/MailEvent.ts"

export const events = Flag.String("events").pipe(
  Flag.withMetavar("a,b"),
  Flag.withDescription(`The event types, separated by commas: ${eventTypes.join(", ")}`),
  Flag.filter((text) => text.split(",").every((one) => eventTypes.includes(one as EventType)), () => "event types"),
  Flag.map((text) => text.split(",") as ReadonlyArray<EventType>),
)
