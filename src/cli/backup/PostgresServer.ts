/**
 * Finds the database to back up or to restore into: the named one, the running instance's, or the embedded one of a
 * home in which no instance runs, started for as long as the command takes.
 */
import { Effect, Option } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as EmbeddedPostgres from "../../embedded/EmbeddedPostgres.ts"
import * as Home from "../../embedded/Home.ts"
import { databaseUrls, type Instance } from "../Instance.ts"

/** `make`: whether an embedded database may be made. */
export const serverOf = Effect.fnUntraced(function* (found: Instance, make: boolean) {
  const { config, runtime } = found
  const embedded = config.databaseUrl === null && Option.isNone(runtime) &&
    (make || existsSync(join(config.home, "postgres.json")))
  if (!embedded) return yield* databaseUrls(found)
  const home = yield* Home.open(config.home)
  const { appUrl, ownerUrl } = yield* EmbeddedPostgres.start({ home })
  return { url: appUrl, ownerUrl }
})
