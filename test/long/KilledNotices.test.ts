/**
 * The program is killed with SIGKILL while it mails a person that its request was decided: in the end the notice is told
 * by exactly one mail.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import type { NoticeFault } from "../../services/platform/Failpoints.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { fixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"
import { reason } from "../support/Fixtures.ts"
import { home, start } from "../support/Processes.ts"

/** How many mails there are once the program has died. */
const points: Readonly<Record<NoticeFault, number>> = {
  "notices.written": 0,
  "notices.committed": 1,
}

describe("a notice's mail, killed", () => {
  it.live("is made once and sent", () =>
    Effect.gen(function* () {
      const around = yield* fixture({}, { ROLES: "api,relay,lifecycle" })
      const portal = ids.fernPortal
      const mailer = (more: Readonly<Record<string, string>>) =>
        Effect.flatMap(home, (folder) =>
          start({
            module: "test/long/support/FaultMain.ts",
            env: {
              ...around.env(),
              PORT: "0",
              ROLES: "timers,mail",
              BAILIWICK_HOME: folder,
              BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
              ...more,
            },
          }))

      for (const [point, made] of Object.entries(points)) {
        const subject = `${point.replace(".", "-")}-pat`
        const recipient = `${subject}@example.com`
        const person = { kind: "person", id: subject, version: 1, issuer: demoIssuer, subject, status: "active" }
        yield* around.apply({ ...person, email: recipient, email_verified: true })
        const { json } = yield* (yield* around.as({ subject })).post(
          "/v1/me/access-requests",
          { institution_id: ids.fern, project_id: portal, reason },
          { headers: { "idempotency-key": randomUUID() } },
        )
        const path = `/v1/policies/reviews/${json.policy_review.review_id}/decline`
        yield* around.post("sam", path, { role: "sponsor", reason })
        const mails = around.rows<{ state: string }>(
          `select state from mails where kind = 'person.notices' and recipient = '${recipient}'`,
        )
        assert.lengthOf(yield* mails, 0)

        yield* Effect.scoped(Effect.gen(function* () {
          const doomed = yield* mailer({ FAULT: `${point}:1` })
          assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
        }))
        assert.lengthOf(yield* mails, made, point)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* mailer({ FAULT: "none:0" })
          yield* until("the mail is sent", mails, (rows) =>
            rows.length > 0 && rows.every(({ state }) =>
              state === "sent"
            ))
        }))
        assert.deepStrictEqual(yield* mails, [{ state: "sent" }], point)
      }
    }).pipe(Effect.scoped), 900_000)
})
