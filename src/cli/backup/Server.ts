/**
 * The database that a backup is of, or goes into: the named one, the running instance's, or the embedded one of a home
 * in which nothing runs, started for as long as this takes.
 */
import { Effect, Option } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as EmbeddedPostgres from "../../embedded/EmbeddedPostgres.ts"
import * as Home from "../../embedded/Home.ts"
import { databaseUrls, type Instance } from "../Instance.ts"

/** `make`: an embedded database may come to be. */
export const serverOf = Effect.fnUntraced(function* (found: Instance, make: boolean) {
  const { config, runtime } = found
  const embedded = config.databaseUrl === null && Option.isNone(runtime) &&
    (make || existsSync(join(config.home, "postgres.json")))
  if (!embedded) return yield* databaseUrls(found)
  const home = yield* Home.open(config.home)
  const { appUrl, ownerUrl } = yield* EmbeddedPostgres.start({ home })
  return { url: appUrl, ownerUrl }
})
