/** Checks whether the installation is held, and says what would end that. */
import { Effect } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { readInstallation } from "../../../services/platform/database/Installation.ts"
import { meanings, missingText } from "../InstallationCommand.ts"
import { ok, warn } from "./Finding.ts"

export const installation = Effect.gen(function* () {
  const { epoch, held_reason, missing, state } = yield* readInstallation((yield* Database).sql)
  return state === "open" ? ok("installation", `epoch ${epoch}, open`) : warn(
    "installation",
    [`epoch ${epoch} is held: ${meanings[held_reason!]}`, ...missing.slice(0, 10).map(missingText)].join("; "),
  )
})
