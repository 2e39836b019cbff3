/**
 * What the lost time took away that stands in nobody's lifecycle: API keys, memberships, authenticators, as the stream
 * DIRECTORY told the platform. Of each our last word counts; what is gone already stays as it is. Whether the directory
 * gave back meanwhile what we had ended is not known: it stays ended until the directory says it once more.
 */
import { Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Decision } from "../../schemas/bus/Decisions.ts"
import { endKey } from "../accounts/LostKeys.ts"
import { dropAuthenticator } from "../people/Authenticators.ts"
import { endMembership } from "../people/Memberships.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Bus } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import { transact } from "../platform/database/Transact.ts"

const kinds: ReadonlySet<string> = new Set(["api_key", "institution_membership", "authenticator"])

const json = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ kind: Schema.String })))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Decision))

/** A decision; `other` for what is none of these, null for what cannot be read. */
export const toldDecision = (text: string): Decision | "other" | null => {
  const kind = Option.getOrUndefined(json(text))?.kind
  if (kind === undefined) return null
  return kinds.has(kind) ? Option.getOrNull(decode(text)) : "other"
}

/** What it is about: one membership goes by several ids, where it was lost and decided again. */
const aboutOf = (told: Decision) =>
  told.kind === "institution_membership"
    ? [told.kind, told.institution_id, told.person_id, told.role].join("\n")
    : [told.kind, told.id].join("\n")

const isLater = (told: Decision, known: Decision | undefined) =>
  told.kind !== "institution_membership" || known?.kind !== "institution_membership" ||
  told.decided_at >= known.decided_at

export const lostDecisions = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const bus = yield* Bus

  /** What was told since then. */
  const read = Effect.fn("LostDecisions.read")(function* (sinceMillis: number) {
    const told = new Map<string, Decision>()
    let unreadable = 0
    yield* bus.history("DIRECTORY", sinceMillis, (messages) =>
      Effect.sync(() => {
        for (const { data } of messages) {
          const decision = toldDecision(new TextDecoder().decode(data))
          if (decision === null) unreadable++
          else if (decision !== "other" && isLater(decision, told.get(aboutOf(decision)))) {
            told.set(aboutOf(decision), decision)
          }
        }
      }))
    return { decisions: [...told.values()], unreadable }
  })

  const one = (told: Decision): Effect.Effect<boolean, SqlError.SqlError> => {
    switch (told.kind) {
      case "api_key":
        return endKey(sql, told.id)
      case "institution_membership":
        return endMembership(sql, told)
      case "authenticator":
        return dropAuthenticator(sql, told.id)
    }
  }

  /** Takes away again what a decision took away; gives whether it was there. */
  const reapply = Effect.fn("LostDecisions.reapply")((told: Decision) =>
    transact(Effect.gen(function* () {
      if (!(yield* one(told))) return false
      yield* audit.append({
        ...{ action: "recovery.reapplied", actor: "system", outcome: "done", details: { kind: told.kind } },
        subject: `${told.kind.replaceAll("_", "-")}:${told.id}`,
      })
      return true
    })).pipe(Effect.provideService(Database, database))
  )

  return { read, reapply }
})
