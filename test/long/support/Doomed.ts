/** Programs that kill themselves at a point, beside one that lives on the same database. */
import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import type { AssertionFault, DecisionFault, SignalFault } from "../../../services/platform/Failpoints.ts"
import { issuerKeyFile } from "../../../src/embedded/EmbeddedIssuer.ts"
import { api } from "../../e2e/support/ApiClient.ts"
import type { IdentityFixture } from "../../e2e/support/ProgramIdentity.ts"
import { home, start } from "../../support/Processes.ts"

type Point = AssertionFault | DecisionFault | SignalFault
type Api = ReturnType<typeof api>

/** A program with these roles that dies when it comes to the point for the first time. */
export const dyingAt = Effect.fnUntraced(function* (around: IdentityFixture, point: Point, roles: string) {
  const folder = yield* home
  copyFileSync(join(around.home, issuerKeyFile), join(folder, issuerKeyFile))
  return yield* start({
    module: "test/long/support/FaultMain.ts",
    env: {
      ...around.env(),
      PORT: "0",
      ROLES: roles,
      BAILIWICK_HOME: folder,
      FAULT: `${point}:1`,
      BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
    },
  })
})

/** A program with these roles comes to the point by itself, and dies. */
export const diesAt = Effect.fnUntraced(function* (around: IdentityFixture, point: Point, roles: string) {
  const doomed = yield* dyingAt(around, point, roles)
  assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
}, Effect.scoped)

/** Asks a program that dies of it, without an answer. */
export const unanswered = Effect.fnUntraced(function* <E>(
  around: IdentityFixture,
  point: Point,
  ask: (of: Api) => Effect.Effect<unknown, E>,
) {
  const doomed = yield* dyingAt(around, point, "api")
  const [, origin] = yield* doomed.line(/bailiwick ready on (http:\S+)/)
  assert.isTrue(Exit.isFailure(yield* Effect.exit(ask(api(() => origin!)))), "no answer")
  assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
}, Effect.scoped)
