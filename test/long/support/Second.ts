/** A second process on the same database, broker and key ring, with a home of its own. */
import { Effect } from "effect"
import { join } from "node:path"
import { instance } from "../../e2e/support/ProgramInstance.ts"
import type { ProgramWorld } from "../../e2e/support/ProgramWorld.ts"
import { home } from "../../support/Processes.ts"

export const second = Effect.fnUntraced(
  function* (world: ProgramWorld, changes: Readonly<Record<string, string>> = {}) {
    const other = yield* instance({
      ...world.env,
      ...changes,
      BAILIWICK_HOME: yield* home,
      BAILIWICK_KEYS_FILE: join(world.home, "keys.json"),
    })
    yield* other.start()
    return other
  },
)

/** Makes claims short: a lease lasts two deadlines and ten seconds. */
export const brisk = {
  WEBHOOKS_TIMEOUT: "2 seconds",
  WEBHOOKS_RETRY_DELAYS: Array(8).fill("500 millis").join(","),
}
