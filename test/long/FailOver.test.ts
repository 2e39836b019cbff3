/** A standby takes the database's place under the running program: a new epoch begins without an operator. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { fixture, ids, product } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"
import { ownPostgres } from "../support/OwnPostgres.ts"

describe("a fail-over under the running program", () => {
  it.live("begins a new epoch, opens by itself, and products follow", () =>
    Effect.gen(function* () {
      const postgres = yield* ownPostgres
      const at = yield* fixture({ database: postgres })
      yield* at.apply({
        kind: "person",
        id: "quinn",
        version: 1,
        issuer: demoIssuer,
        subject: "quinn",
        display_name: "Quinn",
        email: "quinn@fern.example",
        email_verified: true,
        status: "active",
      }, {
        kind: "access",
        id: "a-quinn",
        version: 1,
        institution_id: ids.fern,
        project_id: ids.fernPortal,
        person_id: "quinn",
        role: "user",
        state: "active",
      })
      yield* at.grant("product")
      const shop = yield* product(at)
      yield* shop.enters("quinn", "may")
      const before = Math.floor(Date.now() / 1_000)
      yield* at.published

      yield* postgres.kill
      yield* postgres.promote
      yield* postgres.start
      const installation = at.rows<{ epoch: number; state: string; held_reason: string | null; timeline_id: string }>(
        `select epoch, state, held_reason, timeline_id from installation`,
      )
      const [row] = yield* until("open in the new epoch", installation, ([row]) =>
        row!.epoch === 2 && row!.state === "open")
      assert.strictEqual(row!.timeline_id, "00000002")
      // Earlier sessions have to sign in again, as soon as the product has taken its snapshot.
      yield* until("sessions ended", shop.enter("quinn", before - 1), (told) =>
        told === "session_ended")
      yield* shop.enters("quinn", "may")
      yield* until(
        "ada signed in anew",
        Effect.flatMap(at.as("ada"), (ada) =>
          ada.get("/v1/me")),
        ({ status }) => status === 200,
      )
      yield* at.grant("another")
      yield* at.apply({
        kind: "access",
        id: "a-quinn",
        version: 2,
        institution_id: ids.fern,
        project_id: ids.fernPortal,
        person_id: "quinn",
        role: "user",
        state: "revoked",
      })
      yield* shop.enters("quinn", "no_access")
      assert.notMatch(shop.output(), /invalid_key/)
    }), 240_000)
})
