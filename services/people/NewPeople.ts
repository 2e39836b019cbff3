/**
 * Creates people by the API: for an operator, or for a service that this installation's configuration names. A person
 * of an issuer that is not configured exists, but cannot sign in.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { PersonId } from "../../schemas/BrandedIds.ts"
import type { CreatedPerson, PersonCreate } from "../../schemas/identity/RequestBodies.ts"
import { PersonExists, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { answerTo, fence, load, newRow, unchanged } from "../platform/database/FencedCommand.ts"
import { insertion, type UnitOfWork, write } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { isDataFault } from "../platform/database/SqlErrors.ts"
import { isOperatorIn, operatorRow, roleRequired } from "./Roles.ts"

/** The caller: a person, or a service by its issuer and client. */
export interface Writer {
  readonly principal: string
  readonly personId: PersonId | null
  readonly issuer: string
  readonly clientId: string
}

/** `id` and `status` are those of the person who has the identity; null where the identity is free. */
interface Loaded {
  readonly operator: string
  readonly id: PersonId | null
  readonly status: string | null
}

/** The refusal of a write whose identity is longer than an index entry can be; null for any other fault. */
export const tooLong = (error: SqlError.SqlError): HTTPValidationError | null =>
  isDataFault(error)
    ? HTTPValidationError.at(
      ["body", "subject"],
      "value_error",
      "Value error, issuer and subject are too long together",
    )
    : null

const decide = Effect.fnUntraced(function* (loaded: Loaded, by: Writer, writers: ReadonlyArray<string>) {
  const may = by.personId === null ? writers.includes(`${by.issuer} ${by.clientId}`) : isOperatorIn(loaded.operator)
  if (!may) return yield* roleRequired("an active operator, or a service that DIRECTORY_WRITER_CLIENTS names")
  if (loaded.id !== null) {
    return yield* new PersonExists({
      detail: `Person ${loaded.id} has this identity and is ${loaded.status}: use that id, or name another subject.`,
    })
  }
})

export class NewPeople extends Context.Service<NewPeople, {
  /**
   * Creates a person: a command of two round trips (FencedCommand.ts), refused by `tooLong`; or in the current
   * transaction. 422 where issuer and subject are together longer than an index entry can be.
   */
  readonly create: (
    asked: PersonCreate & { readonly by: Writer },
  ) => Effect.Effect<CreatedPerson, HTTPValidationError | PersonExists | RoleRequired | SqlError.SqlError, UnitOfWork>
}>()("bailiwick/services/people/NewPeople") {
  /** `writers`: `issuer client_id` of each service that may (DIRECTORY_WRITER_CLIENTS). */
  static readonly layer = ({ writers }: { readonly writers: ReadonlyArray<string> }) =>
    Layer.effect(
      NewPeople,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const ids = yield* Ids

        const identity = newRow(sql, "identities", {
          issuer: "text",
          subject: "text",
          person_id: "text",
          linked_at: "timestamptz",
          made_by: "text",
        })
        const people = insertion(sql, "people", {
          id: "text",
          issuer: "text",
          subject: "text",
          status: "text",
          made_by: "text",
          created_at: "timestamptz",
          updated_at: "timestamptz",
        })

        const create: NewPeople["Service"]["create"] = Effect.fn("NewPeople.create")(
          function* ({ by, issuer, reason, subject }) {
            const operator = operatorRow(sql, by.personId)
            const loaded = yield* load<Loaded>(
              sql,
              sql`select ${answerTo(sql, operator)} as operator, c.id, c.status
                from (select) always
                left join identities i on i.issuer = ${issuer} and i.subject = ${subject}
                left join people p on p.id = i.person_id
                left join people c on c.id = coalesce(p.merged_into, p.id)`,
            )
            yield* decide(loaded, by, writers)

            const id = PersonId.make(yield* ids.next)
            const now = new Date(yield* Clock.currentTimeMillis)
            const at = now.toISOString()
            yield* fence(
              sql,
              unchanged(sql, operator, loaded.operator),
              identity({ issuer, subject, person_id: id, linked_at: at, made_by: by.personId }),
            ).pipe(Effect.catch((error) => Effect.fail(tooLong(error) ?? error)))
            const made = { issuer, subject, status: "active", made_by: by.personId, created_at: at, updated_at: at }
            yield* write(sql, people, [{ id, ...made }])
            yield* audit.append({
              action: "person.created",
              actor: by.principal,
              subject: `person:${id}`,
              outcome: "done",
              details: { reason },
            })
            return {
              person_id: id,
              issuer,
              subject,
              reason,
              state: "active" as const,
              version: 1,
              created_at: now.toISOString(),
              event_id: null,
              job_id: null,
              policy_review: null,
            }
          },
        )
        return NewPeople.of({ create })
      }),
    )
}
