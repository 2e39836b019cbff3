/**
 * People made by the API (specification 000, PersonCreate): by an operator, or by a service that the operator of this
 * installation named. A person of an issuer that is not configured exists, but cannot sign in.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import type { CreatedPerson, PersonCreate } from "../../schemas/identity/Requests.ts"
import { PersonExists, type RoleRequired } from "../../schemas/problems/Identity.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { Audit } from "../platform/Audit.ts"
import { Database } from "../platform/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { isDataFault } from "../platform/SqlFaults.ts"
import { roleRequired, Roles } from "./Roles.ts"

/** Who asks: a person, or a service by its issuer and client. */
export interface Writer {
  readonly principal: string
  readonly personId: string | null
  readonly issuer: string
  readonly clientId: string
}

export class NewPeople extends Context.Service<NewPeople, {
  /** In the current transaction of `Transact`. 422 where the two are longer than what a database can tell apart. */
  readonly create: (
    asked: PersonCreate & { readonly by: Writer },
  ) => Effect.Effect<CreatedPerson, HTTPValidationError | PersonExists | RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/people/NewPeople") {
  /** `writers`: `issuer client_id` of each service that may (DIRECTORY_WRITER_CLIENTS). */
  static readonly layer = ({ writers }: { readonly writers: ReadonlyArray<string> }) =>
    Layer.effect(
      NewPeople,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const ids = yield* Ids
        const roles = yield* Roles

        const holder = Effect.fnUntraced(function* (issuer: string, subject: string) {
          const [row] = yield* sql<{ id: string; status: string }>`
            select c.id, c.status from identities i join people p on p.id = i.person_id
            join people c on c.id = coalesce(p.merged_into, p.id)
            where i.issuer = ${issuer} and i.subject = ${subject}`
          return new PersonExists({
            detail: row === undefined
              ? "Read the person again: another request made it at this moment."
              : `Person ${row.id} has this identity and is ${row.status}: use that id, or name another subject.`,
          })
        })

        const create: NewPeople["Service"]["create"] = Effect.fn("NewPeople.create")(
          function* ({ by, issuer, reason, subject }) {
            const may = by.personId === null
              ? writers.includes(`${by.issuer} ${by.clientId}`)
              : yield* roles.isOperator(by.personId)
            if (!may) return yield* roleRequired("an active operator, or a service that DIRECTORY_WRITER_CLIENTS names")
            const id = yield* ids.next
            const now = new Date(yield* Clock.currentTimeMillis)
            const made = yield* sql`
              with named as (
                insert into identities (issuer, subject, person_id, linked_at, made_by)
                values (${issuer}, ${subject}, ${id}, ${now}, ${by.personId})
                on conflict do nothing returning person_id
              )
              insert into people (id, issuer, subject, status, made_by, created_at, updated_at)
              select person_id, ${issuer}, ${subject}, 'active', ${by.personId}, ${now}, ${now} from named
              returning 1`.pipe(
              Effect.catchIf((error) => SqlError.isSqlError(error) && isDataFault(error), () =>
                HTTPValidationError.at(
                  ["body", "subject"],
                  "value_error",
                  "Value error, issuer and subject are too long together",
                )),
            )
            if (made.length === 0) return yield* yield* holder(issuer, subject)
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
