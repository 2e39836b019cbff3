/** What happened to a person's credentials and sessions, told to every project that has to hear of the person. */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { CredentialType } from "../../schemas/identity/CredentialActions.ts"
import { type Fact, Positions } from "../lifecycle/Positions.ts"
import { Database } from "../platform/Database.ts"
import { personOf, persons } from "./Persons.ts"

/** One thing that happened. */
export type Happening =
  | {
    readonly kind: "credential-change"
    readonly credentialType: CredentialType
    readonly changeType: "create" | "update" | "delete"
    readonly aaguid: string | null
  }
  | { readonly kind: "recovery-information-changed" }
  /** `sid`: the issuer's name of the session, which is how products know it. */
  | { readonly kind: "session-revoked"; readonly sid: string }

const factOf = (happening: Happening): Pick<Fact, "kind" | "payload" | "session"> => {
  if (happening.kind === "session-revoked") return { kind: happening.kind, session: happening.sid }
  if (happening.kind === "recovery-information-changed") return { kind: happening.kind }
  const { aaguid, changeType, credentialType, kind } = happening
  return {
    kind,
    payload: {
      credential_type: credentialType,
      change_type: changeType,
      ...(aaguid === null ? {} : { fido2_aaguid: aaguid }),
    },
  }
}

export class Tellings extends Context.Service<Tellings, {
  /** Tells it in the current transaction, of one cause and begun by the person; gives the ids of the events. */
  readonly tell: (
    personId: string,
    happenings: ReadonlyArray<Happening>,
  ) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}>()("bailiwick/services/people/Tellings") {
  static readonly layer = Layer.effect(
    Tellings,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const positions = yield* Positions
      const { audienceOf } = persons(sql)

      const tell = Effect.fn("Tellings.tell")(function* (personId: string, happenings: ReadonlyArray<Happening>) {
        if (happenings.length === 0) return []
        const audience = yield* audienceOf(personId, yield* Clock.currentTimeMillis)
        return yield* positions.append(...happenings.flatMap((happening) =>
          audience.map((hearer): Fact => ({
            ...factOf(happening),
            projectId: hearer.projectId,
            institutionId: hearer.institutionId,
            person: personOf(hearer),
            initiatedBy: "user",
          }))
        ))
      })
      return Tellings.of({ tell })
    }),
  )
}
