/** Events, and the gate's decisions after them for several people and sessions. */
import type { Json } from "../../sdk/Canonical.ts"
import type { SessionSigns } from "../../sdk/Gate.ts"
import { type EventInput, granted, now, own, projectId, revoked } from "./Tokens.ts"

const user = (sub: string) => ({ format: "iss_sub", iss: "https://id.example", sub })
const about = (type: string, subId: Json, payload: object = {}): EventInput => ({
  type,
  subId,
  payload: { event_timestamp: now, initiating_entity: "system", ...payload },
})
const risc = (name: string) => `https://schemas.openid.net/secevent/risc/event-type/${name}`
const ended = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
const linked = own("identity-linked")

export const accessEvents: ReadonlyArray<EventInput> = [
  ...["pat", "off", "gone", "floor", "one", "old", "first", "merged"].map((name) => granted(name)),
  about(risc("account-disabled"), user("off")),
  about(risc("account-disabled"), user("pat")),
  about(risc("account-enabled"), user("pat")),
  revoked("gone"),
  about(ended, user("floor")),
  about(ended, { format: "complex", user: user("one"), session: { format: "opaque", id: "s1" } }),
  about(linked, user("new"), { previous: user("old") }),
  about(linked, user("first"), { linked: user("second") }),
  about(linked, user("other"), { linked: user("merged") }),
  about(ended, user("other"), { event_timestamp: now - 100 }),
]

export const entries: ReadonlyArray<readonly [string, SessionSigns | undefined, string]> = [
  ["pat", undefined, "admitted"],
  ["pat", {}, "admitted"],
  ["nobody", undefined, "no_access"],
  ["off", undefined, "account_disabled"],
  ["gone", undefined, "no_access"],
  ["floor", { sessionIssuedAt: now }, "session_ended"],
  ["floor", { sessionIssuedAt: now + 1 }, "admitted"],
  ["floor", { sessionIssuedAt: NaN }, "session_ended"],
  ["floor", {}, "session_ended"],
  ["one", { sid: "s1", sessionIssuedAt: now + 100 }, "session_ended"],
  ["one", { sid: "s2", sessionIssuedAt: now - 100 }, "admitted"],
  // Without `sid` the session may be the one that ended.
  ["one", { sessionIssuedAt: now - 100 }, "session_ended"],
  ["one", { sessionIssuedAt: now + 100 }, "admitted"],
  ["new", undefined, "admitted"],
  ["old", undefined, "identity_replaced"],
  ["second", undefined, "admitted"],
  ["first", undefined, "admitted"],
  ["other", undefined, "admitted"],
  ["merged", { sessionIssuedAt: now - 200 }, "session_ended"],
]

export const withdrawn = about(own("project-withdrawn"), { format: "opaque", id: projectId })
