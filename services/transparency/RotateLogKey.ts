/**
 * Replaces the transparency log's key (docs/transparency.md): a second key is added, and signs each checkpoint beside
 * the first; once the log's readers were told it, the first one is retired, and its private half deleted. A retired key's
 * checkpoints stay the log's.
 *
 * A program that knows one key only takes a checkpoint with two signatures for a foreign one, and holds the log. So
 * the schema is closed to such programs before the second key is there, which the tables' owner alone may do.
 */
import { Clock, Effect } from "effect"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { closedMillis, closeToOlder } from "../platform/database/OlderPrograms.ts"
import { Database } from "../platform/database/Database.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { Vault } from "../platform/security/Vault.ts"
import { makeLogKey } from "./DecisionLog/LogKeys.ts"

/** Why a key was not changed. */
export type LogKeyFault =
  | "the log has not begun"
  | "the log has two keys already: retire one of them first"
  | "only the tables' owner closes the log to programs that know one key: set DATABASE_OWNER_URL"
  | "not a key that signs the log's checkpoints"
  | "the log's only key: add another one first"

interface Added {
  /** As verifiers are told it. */
  readonly key: string | null
  readonly fault: LogKeyFault | null
}

/** What both commands do first: the log is theirs until the end of the transaction. */
const opening = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* lock(sql, "transparencyLog")
  const [head] = yield* sql<{ origin: string }>`select origin from log_head for update`
  const keys = yield* sql<{ key: string }>`
    select verifier_key as key from log_keys where retired_at is null order by created_at, verifier_key`
  return { origin: head?.origin ?? null, keys: keys.map(({ key }) => key) }
})

/** The newest checkpoint is signed anew in the next turn, although no entry was added. */
const signAnew = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`update log_head set published_at = 'epoch' where published_at is not null`
})

const record = Effect.fnUntraced(
  function* (action: "log-key.added" | "log-key.retired", origin: string, key: string, reason: string) {
    const audit = yield* Audit
    yield* audit.append({
      action,
      actor: yield* CurrentOperator,
      subject: `log:${origin}`,
      outcome: "done",
      decision: true,
      details: { reason, key },
    })
  },
)

/** The first version of the program that knows several keys. */
export const knowsTwoKeys = 112

/** Adds a second key; `waitMillis`: the pause until older programs have stopped. One of both members is null. */
export const addLogKey = Effect.fnUntraced(function* (waitMillis = closedMillis) {
  const { owns, sql } = yield* Database
  const vault = yield* Vault
  const refused = (fault: LogKeyFault): Added => ({ key: null, fault })

  const faultOf = ({ keys, origin }: { readonly keys: ReadonlyArray<string>; readonly origin: string | null }) => {
    if (origin === null) return "the log has not begun"
    return keys.length > 1 ? "the log has two keys already: retire one of them first" : null
  }

  const add = Effect.fnUntraced(function* (reason: string) {
    const found = yield* opening
    const { origin } = found
    const fault = faultOf(found)
    if (fault !== null || origin === null) return refused(fault ?? "the log has not begun")
    const key = yield* makeLogKey(sql, vault, origin)
    yield* signAnew
    yield* record("log-key.added", origin, key, reason)
    return { key, fault: null } satisfies Added
  }, sql.withTransaction)

  return Effect.fn("addLogKey")(function* (reason: string) {
    const fault = faultOf(yield* sql.withTransaction(opening))
    if (fault !== null) return refused(fault)
    if (!(yield* owns)) {
      return refused("only the tables' owner closes the log to programs that know one key: set DATABASE_OWNER_URL")
    }
    if (yield* closeToOlder(knowsTwoKeys)) yield* Effect.sleep(waitMillis)
    return yield* add(reason)
  })
})

/** Retires one of two keys; returns why it did not, or null. */
export const retireLogKey = Effect.gen(function* () {
  const { sql } = yield* Database
  const refused = (fault: LogKeyFault): LogKeyFault | null => fault
  return Effect.fn("retireLogKey")(function* (key: string, reason: string) {
    const { keys, origin } = yield* opening
    if (origin === null || !keys.includes(key)) return refused("not a key that signs the log's checkpoints")
    if (keys.length === 1) return refused("the log's only key: add another one first")
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`update log_keys set retired_at = ${now}, private_key = ''::bytea where verifier_key = ${key}`
    yield* signAnew
    yield* record("log-key.retired", origin, key, reason)
    return null
  }, sql.withTransaction)
})
