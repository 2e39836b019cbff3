/** A second process on the same database, broker and key ring, with a home of its own. */
import { Effect } from "effect"
import { join } from "node:path"
import { instance } from "../../e2e/support/ProgramInstance.ts"
import type { ProgramFixture } from "../../e2e/support/ProgramFixture.ts"
import { home } from "../../support/Processes.ts"

export const second = Effect.fnUntraced(
  function* (fixture: ProgramFixture, changes: Readonly<Record<string, string>> = {}) {
    const other = yield* instance({
      ...fixture.env,
      ...changes,
      BAILIWICK_HOME: yield* home,
      BAILIWICK_KEYS_FILE: join(fixture.home, "keys.json"),
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
