/** The installation for operators: its epoch, why it is held, and their word that opens it. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { type InstallationRow, readInstallation } from "../platform/database/Installation.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { openInstallation } from "./OpenInstallation.ts"
import { mustOperate } from "./OperatorRole.ts"

type Installed = Effect.Effect<InstallationRow, RoleRequired | SqlError.SqlError>

export class OperatorInstallation extends Context.Service<OperatorInstallation, {
  readonly read: (personId: PersonId) => Installed
  /** Opens it, in the caller's transaction; where it is open already, nothing changes. */
  readonly open: (asked: { readonly personId: PersonId; readonly reason: string }) => Installed
}>()("bailiwick/services/operations/OperatorInstallation") {
  static readonly layer = Layer.effect(
    OperatorInstallation,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operating = yield* mustOperate
      const opening = yield* openInstallation

      const read: OperatorInstallation["Service"]["read"] = Effect.fn("OperatorInstallation.read")(
        function* (personId) {
          yield* operating(personId)
          return yield* readInstallation(sql)
        },
      )

      const open: OperatorInstallation["Service"]["open"] = Effect.fn("OperatorInstallation.open")(
        function* ({ personId, reason }) {
          yield* operating(personId, "share")
          yield* Effect.provideService(opening(reason), CurrentOperator, `person:${personId}`)
          return yield* readInstallation(sql)
        },
      )

      return OperatorInstallation.of({ read, open })
    }),
  )
}
