/** Linking two identities, step by step. */
import { Effect } from "effect"
import { Links } from "../../../services/people/Links.ts"
import { Database } from "../../../services/platform/Database.ts"
import { transact } from "../../../services/platform/Transact.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { reason } from "../access/RequestWorld.ts"

export const prove = (personId: string, token: string) =>
  Effect.flatMap(Links, (links) => Effect.flatMap(links.prove({ personId, token }), transact))
export const ask = (personId: string, proof_id: string) =>
  Effect.flatMap(Links, (links) => transact(links.request({ personId, proof_id, reason })))
export const object = (personId: string, linkRequestId: string) =>
  Effect.flatMap(Links, (links) => transact(links.object({ personId, linkRequestId })))

/** A link that `one` asks for, with a token of `other`. */
export const asked = Effect.fnUntraced(function* (one: string, other: string) {
  const { proof_id } = yield* prove(one, yield* tokenFor(other))
  return yield* ask(one, proof_id)
})

export const identitiesOf = Effect.fnUntraced(function* (personId: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ subject: string }>`
    select subject from identities where person_id = ${personId} order by subject`
  return rows.map(({ subject }) => subject)
})

export const mailsAbout = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const rows = yield* sql<{ recipient: string }>`select recipient from mails where subject_id = ${id}`
  return rows.map(({ recipient }) => recipient)
})
