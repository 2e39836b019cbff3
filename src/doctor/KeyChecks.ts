/**
 * Checks whether this machine's key ring is the database's. It changes neither, while a start makes a ring or enters
 * its keys.
 */
import { Effect, Result } from "effect"
import { timingSafeEqual } from "node:crypto"
import { Database } from "../../services/platform/database/Database.ts"
import { checkValue, parseRing, readRing, VaultError } from "../../services/platform/security/KeyRing.ts"
import type { AppConfig } from "../AppConfig.ts"
import { fail, ok, warn } from "./Finding.ts"
import { keyUse } from "./KeyUse.ts"

const what = "keys"

export const keyCheck = Effect.fnUntraced(function* (config: AppConfig) {
  const { sql } = yield* Database
  const known = yield* sql<{ kid: string; check_value: Uint8Array }>`select kid, check_value from vault_keys`
  const file = config.keysFile ?? ""
  const read = Result.try({
    try: () => config.keys === null ? readRing(file) : parseRing(config.keys, "BAILIWICK_KEYS"),
    catch: (error) => error instanceof VaultError ? error.message : String(error),
  })
  if (Result.isFailure(read)) return [fail(what, read.failure)]
  const ring = read.success
  if (ring === null) {
    return [
      known.length === 0
        ? ok(what, "none yet", "the first start makes a ring")
        : fail(what, `${file} is missing, this database has secrets under ${known[0]!.kid}`, "put the ring back"),
    ]
  }
  for (const { check_value, kid } of known) {
    const key = ring.keys.get(kid)
    if (key === undefined) {
      return [fail(what, `the ring lacks ${kid}, which this database uses`, "take the ring that has it")]
    }
    if (!timingSafeEqual(checkValue(kid, key), check_value)) {
      return [fail(what, `the ring's ${kid} is another key than this database's`, "take the ring that belongs to it")]
    }
  }
  const fresh = [...ring.keys.keys()].filter((kid) => !known.some((key) => key.kid === kid))
  if (fresh.length > 0) {
    return [
      warn(what, `${fresh.join(", ")} unknown to this database until the next start`, "give every process this ring"),
    ]
  }
  const idle = known.map(({ kid }) => kid).filter((kid) => kid !== ring.active)
  return [
    ok(what, `${known.length} in the ring and in the database, ${ring.active} is active`),
    ...(yield* keyUse(idle)),
  ]
})
