/** A streaming standby takes its primary's place under load, behind an address that moves with it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { fixture as identity, ids, product } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"
import { standbyPostgres } from "../support/StandbyPostgres.ts"
import { brisk } from "./support/Second.ts"
import { close, databaseOf, ended, traffic } from "./support/Traffic.ts"

interface Installation {
  readonly epoch: number
  readonly state: string
}

describe.concurrent("a standby that is promoted", () => {
  it.live(
    "synchronous: what was answered is there, and every event is delivered as it would have been",
    () =>
      Effect.gen(function* () {
        const postgres = yield* standbyPostgres("synchronous")
        const around = yield* fixture(brisk, { database: postgres })
        const flow = yield* traffic(around)
        const { api, session } = flow.account

        // Two clients that go on through the fail-over: one makes keys, the other one changes one webhook again and again.
        const made: Array<string> = []
        let answered = 0
        let known = 0
        const [hook] = flow.hooks
        const makes = session.post("/v1/api-keys/", { name: "made under load" }).pipe(
          Effect.map(({ json, status }) => status === 201 ? void made.push(json.id) : undefined),
        )
        const changes = Effect.suspend(() => {
          const description = String(++answered)
          return Effect.map(api.patch(`/v1/webhooks/${hook!.id}`, { description }), ({ status }) => {
            if (status === 200) known = Number(description)
          })
        })
        const clients = yield* Effect.all([Effect.forever(makes), Effect.forever(changes)], { concurrency: 2 }).pipe(
          Effect.forkScoped,
        )
        for (let n = 0; n < 4; n++) yield* flow.publish(250)
        yield* until(
          "some work",
          Effect.sync(() => Math.min(made.length, known, flow.target.hits.length)),
          (n) => n > 20,
        )
        yield* flow.publish(250)
        const [before, lastKnown] = [made.length, known]
        yield* postgres.failOver
        yield* flow.publish(250)
        yield* until("work on the standby", Effect.sync(() => [made.length, known]), ([keys, last]) =>
          keys! > before + 5 && last! > lastKnown + 5)
        yield* Fiber.interrupt(clients)

        const { json: keys } = yield* until(
          "the keys",
          session.get("/v1/api-keys/"),
          ({ status }) =>
            status === 200,
        )
        const there = new Set((keys.data ?? keys).map(({ id }: { readonly id: string }) =>
          id
        ))
        assert.deepStrictEqual(made.filter((id) => !there.has(id)), [])
        const { json } = yield* api.get(`/v1/webhooks/${hook!.id}`)
        assert.isAtLeast(Number(json.description), known)
        yield* ended(flow)
        yield* close(flow).pipe(Effect.provide(databaseOf(around)))
      }).pipe(Effect.scoped),
    300_000,
  )

  it.live(
    "asynchronous: what it lacks is taken away again or named, and the installation says that it failed over",
    () =>
      Effect.gen(function* () {
        const postgres = yield* standbyPostgres("asynchronous")
        const at = yield* identity({ database: postgres })
        const quinn = { institution_id: ids.fern, project_id: ids.fernPortal, person_id: "quinn", role: "user" }
        const person = {
          kind: "person",
          id: "quinn",
          version: 1,
          issuer: demoIssuer,
          subject: "quinn",
          display_name: "Quinn",
          email: "quinn@fern.example",
          email_verified: true,
          status: "active",
        }
        yield* at.apply(person, { kind: "access", id: "a-quinn", version: 1, ...quinn, state: "active" })
        yield* at.grant("product")
        const shop = yield* product(at)
        yield* shop.enters("quinn", "may")
        yield* at.published

        yield* postgres.lag
        yield* at.apply({ kind: "access", id: "a-quinn", version: 2, ...quinn, state: "revoked" })
        yield* shop.enters("quinn", "no_access")
        yield* at.published
        yield* postgres.failOver
        yield* until(
          "open in the new epoch",
          at.rows<Installation>(`select epoch, state from installation`),
          ([row]) => row!.epoch === 2 && row!.state === "open",
        )
        const [access] = yield* at.rows<{ state: string }>(`select state from access where id = 'a-quinn'`)
        assert.deepStrictEqual(access, { state: "revoked" })
        yield* shop.enters("quinn", "no_access")
        const told = (...filter: ReadonlyArray<string>) =>
          Effect.map(at.type("audit", ...filter), ({ output }) =>
            output.trim().split("\n").map((line) => JSON.parse(line)))
        const again = yield* told("--action", "recovery.reapplied")
        // The lost event, by its id and kind.
        assert.deepStrictEqual(again.map(({ details, subject }) => [subject, details.kind]), [
          [`project:${ids.fernPortal}`, "access-revoked"],
        ])
        const [held] = yield* told("--subject", "installation:2", "--action", "installation.held")
        assert.include(JSON.stringify(held), "failed_over")
      }).pipe(Effect.scoped),
    300_000,
  )
})
