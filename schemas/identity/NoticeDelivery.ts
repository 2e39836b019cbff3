/** How a person is told by mail of what became of its requests and of what waits for its signature (docs/requests.md). */
import { Schema } from "effect"

/** At most one mail an hour, each notice by a mail of its own, or none. */
export const NoticeDelivery = Schema.Literals(["digest", "immediately", "off"])
export type NoticeDelivery = typeof NoticeDelivery.Type

export const NoticeSettings = Schema.Struct({ delivery: NoticeDelivery }).annotate({ identifier: "NoticeSettings" })
export type NoticeSettings = typeof NoticeSettings.Type

export const NoticeSettingsChange = Schema.Struct({ delivery: NoticeDelivery })
  .annotate({ identifier: "NoticeSettingsChange" })
