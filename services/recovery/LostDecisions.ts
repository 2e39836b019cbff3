/**
 * Ends again what was ended in the lost time and has no lifecycle events: API keys, memberships, authenticators, as
 * this program had published it on the stream DIRECTORY. The last message about each counts; what is gone already stays
 * as it is. Whether the directory has given back since what was ended is not known: it stays ended until the directory
 * sends it once more.
 */
import { Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Decision } from "../../schemas/bus/Decisions.ts"
import { endKey } from "../accounts/LostKeys.ts"
import { dropAuthenticator } from "../people/Authenticators.ts"
import { endMembership } from "../people/Memberships.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import type { InstallationRow } from "../platform/database/Installation.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { suppliedHistory } from "./SuppliedHistory.ts"

const kinds: ReadonlySet<string> = new Set(["api_key", "institution_membership", "authenticator"])

const json = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ kind: Schema.String })))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Decision))

/**
 * The decision in a message of DIRECTORY; `other` where the message is of another kind, null where it cannot be read.
 */
export const toldDecision = (text: string): Decision | "other" | null => {
  const kind = Option.getOrUndefined(json(text))?.kind
  if (kind === undefined) return null
  return kinds.has(kind) ? Option.getOrNull(decode(text)) : "other"
}

/**
 * The key of a decision's object: a membership that was lost and decided again has several ids, so its members name it.
 */
const aboutOf = (decision: Decision) =>
  decision.kind === "institution_membership"
    ? [decision.kind, decision.institution_id, decision.person_id, decision.role].join("\n")
    : [decision.kind, decision.id].join("\n")

const isLater = (decision: Decision, known: Decision | undefined) =>
  decision.kind !== "institution_membership" || known?.kind !== "institution_membership" ||
  decision.decided_at >= known.decided_at

export const lostDecisions = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const history = yield* suppliedHistory

  /** The last decision about each object since `sinceMillis`, and the number of unreadable messages. */
  const read = Effect.fn("LostDecisions.read")(function* (sinceMillis: number, { streams }: InstallationRow) {
    const newest = new Map<string, Decision>()
    let unreadable = 0
    yield* history.read("DIRECTORY", { sinceMillis, streams }, (messages) =>
      Effect.sync(() => {
        for (const { data } of messages) {
          const decision = toldDecision(new TextDecoder().decode(data))
          if (decision === null) unreadable++
          else if (decision !== "other" && isLater(decision, newest.get(aboutOf(decision)))) {
            newest.set(aboutOf(decision), decision)
          }
        }
      }))
    return { decisions: [...newest.values()], unreadable }
  })

  const one = (decision: Decision): Effect.Effect<boolean, SqlError.SqlError> => {
    switch (decision.kind) {
      case "api_key":
        return endKey(sql, decision.id)
      case "institution_membership":
        return endMembership(sql, decision)
      case "authenticator":
        return dropAuthenticator(sql, decision.id)
    }
  }

  /** Ends again what a decision had ended; returns whether it was there. */
  const reapply = Effect.fn("LostDecisions.reapply")((decision: Decision) =>
    run(Effect.gen(function* () {
      if (!(yield* one(decision))) return false
      yield* audit.append({
        action: "recovery.reapplied",
        actor: "system",
        outcome: "done",
        decision: true,
        details: { kind: decision.kind },
        subject: `${decision.kind.replaceAll("_", "-")}:${decision.id}`,
      })
      return true
    })).pipe(Effect.provideService(Database, database))
  )

  return { read, reapply }
})
