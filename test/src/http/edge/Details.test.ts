import { assert, describe, it } from "@effect/vitest"
import { detailOf } from "../../../../src/http/edge/Details.ts"

describe("the detail of a problem", () => {
  const rows: ReadonlyArray<readonly [Readonly<Record<string, unknown>>, string | undefined]> = [
    [
      { code: "invalid_state", state: "revoked", allowed: ["proposed", "approved"] },
      "The state is revoked; this needs proposed or approved.",
    ],
    [{ code: "invalid_state", state: "open", allowed: [] }, undefined],
    [{ code: "version_conflict", current_version: 3 }, "The current version is 3: read it again, and decide on that."],
    [
      { code: "insufficient_user_authentication", acr_values: "urn:service:aal2", max_age: 300 },
      "Sign in again: this needs a sign-in of strength urn:service:aal2 and not older than 300 seconds.",
    ],
    [{ code: "insufficient_user_authentication" }, undefined],
    [
      { code: "rate_limited", limit: 5, window_seconds: 60, retry_after: 1 },
      "At most 5 requests in 60 seconds: try again in 1 second.",
    ],
    [{ code: "rate_limited", retry_after: 30 }, "Try again in 30 seconds."],
    [{ code: "broadcasts_in_flight", blockers: [{}, {}] }, "Blocked by 2 items, listed under blockers."],
    [
      { code: "supplied_mismatch", properties: ["iss", "aud", "jwks"] },
      "Leave out what the transmitter supplies: iss, aud and jwks.",
    ],
    [{ code: "body_too_large" }, "A body may have 256 KiB."],
    [{ code: "headers_too_large" }, "The request line and all headers may have 8 KiB together."],
    [{ code: "not_found" }, "Nothing has this path and these ids, or nothing that the caller may see."],
    [{ code: "last_owner" }, undefined],
    [{}, undefined],
  ]
  for (const [problem, detail] of rows) {
    it(`of ${JSON.stringify(problem)}`, () => assert.strictEqual(detailOf(problem), detail))
  }
})
