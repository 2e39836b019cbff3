/** Holds of people by identity providers, for operators: their list, and a person's release (docs/signals.md). */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { PersonId } from "../../schemas/BrandedIds.ts"
import type { PersonHolds, ReleasedPerson } from "../../schemas/identity/PersonHoldView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import {
  FourEyesRequired,
  type Held,
  type InsufficientUserAuthentication,
  type RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { type HoldPosition, listHolds, releasePerson } from "../signals/ReleasePerson.ts"
import type { AskedPage } from "./OperatorAudit.ts"
import { mustOperate } from "./OperatorRole.ts"

interface Asked {
  readonly personId: PersonId
  readonly heldId: PersonId
  readonly reason: string
  /** The check of the operator's sign-in, which comes after the role's. */
  readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
}

type Refused = RoleRequired | SqlError.SqlError

const cursorOf = ({ changed_at, person_id, transmitter }: HoldPosition): string =>
  `${changed_at.getTime()} ${person_id} ${transmitter}`

/** The position of a cursor that the contract has decoded. */
const positionOf = (cursor: string): HoldPosition => {
  const [millis, person, ...transmitter] = cursor.split(" ")
  return {
    changed_at: new Date(Number(millis)),
    person_id: PersonId.make(person!),
    transmitter: transmitter.join(" "),
  }
}

export class OperatorHolds extends Context.Service<OperatorHolds, {
  /** Those held last first. */
  readonly list: (personId: PersonId, page: AskedPage) => Effect.Effect<PersonHolds, Refused>
  /**
   * Ends all holds of a person; NotFound where no provider holds the person. FourEyesRequired for a person who was
   * merged into the operator: no operator ends a hold of their own.
   */
  readonly release: (
    asked: Asked,
  ) => Effect.Effect<
    ReleasedPerson,
    FourEyesRequired | Held | InsufficientUserAuthentication | NotFound | Refused,
    InTransaction
  >
}>()("bailiwick/services/operations/OperatorHolds") {
  static readonly layer = Layer.effect(
    OperatorHolds,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const operating = yield* mustOperate
      const releasing = yield* releasePerson

      const list: OperatorHolds["Service"]["list"] = Effect.fn("OperatorHolds.list")(
        function* (personId, { afterId, limit }) {
          yield* operating(personId)
          const found = yield* listHolds(reads, limit + 1, afterId === undefined ? null : positionOf(afterId))
          const page = found.slice(0, limit)
          return {
            items: page.map(({ changed_at, kind, person_id, told_at, transmitter }) => ({
              person_id,
              transmitter,
              kind,
              told_at: told_at.toISOString(),
              since: changed_at.toISOString(),
            })),
            next_after_id: found.length > limit ? cursorOf(page.at(-1)!) : null,
          }
        },
      )

      /** Locks both people; returns whether they are one person, under whichever identity. */
      const lockBoth = Effect.fnUntraced(function* (personId: PersonId, heldId: PersonId) {
        const rows = yield* sql<{ readonly id: PersonId; readonly canonical: PersonId }>`
          select id, coalesce(merged_into, id) as canonical from people
          where id = any(${[personId, heldId]}::text[]) order by id collate "C" for no key update`
        return rows.some(({ canonical, id }) => id === heldId && canonical === personId)
      })

      const release: OperatorHolds["Service"]["release"] = Effect.fn("OperatorHolds.release")(
        function* ({ heldId, personId, reason, stepUp }) {
          const own = yield* lockBoth(personId, heldId)
          // The operator's row is locked already.
          yield* operating(personId, "none")
          yield* stepUp
          if (own) {
            return yield* new FourEyesRequired({
              detail: "The held account is another one of the caller: another operator has to release it.",
            })
          }
          const holds = yield* Effect.provideService(releasing(heldId, reason), CurrentOperator, `person:${personId}`)
          if (holds === 0) return yield* new NotFound({ detail: "No identity provider holds this person." })
          const [row] = yield* sql<Pick<ReleasedPerson, "status">>`select status from people where id = ${heldId}`
          return { person_id: heldId, holds, status: row!.status }
        },
      )

      return OperatorHolds.of({ list, release })
    }),
  )
}
