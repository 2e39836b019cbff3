/** `signals`: people whom identity providers hold (docs/signals.md). */
import { Console, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { PersonId } from "../../schemas/BrandedIds.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { PersonEventFanout } from "../../services/people/PersonEventFanout.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { listHolds, releasePerson } from "../../services/signals/ReleasePerson.ts"
import { CliFault } from "./CliFault.ts"
import { printable } from "./EscapeControls.ts"
import { busIfKnown, database } from "./Instance.ts"
import { asFlag, operatorNamed, reasonFlag } from "./OperatorName.ts"
import { limitFlag, listFlags, printRows } from "./RowOutput.ts"

const services = PersonEventFanout.layer().pipe(
  Layer.provideMerge(Layer.mergeAll(EventLog.layer, Jobs.layer)),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

const holds = Command.make(
  "holds",
  { ...listFlags, limit: limitFlag },
  Effect.fn("cli.signals.holds")(function* ({ limit, ...how }) {
    const { sql } = yield* Database
    const rows = yield* listHolds(sql, limit)
    yield* printRows(
      rows.map((row) => ({ ...row, told_at: row.told_at.toISOString(), changed_at: row.changed_at.toISOString() })),
      ({ changed_at, kind, person_id, transmitter }) => ({ person_id, transmitter, kind, since: changed_at }),
      how,
      "nobody is held",
    )
  }, Effect.provide(database)),
).pipe(Command.withDescription("Lists people whom identity providers hold, those held last first"))

const person = Flag.String("person").pipe(
  Flag.withSchema(PersonId),
  Flag.withMetavar("ID"),
  Flag.withDescription("The person"),
)

const release = Command.make(
  "release",
  { as: asFlag, person, reason: reasonFlag },
  Effect.fn("cli.signals.release")(function* ({ as, person, reason }) {
    const ended = yield* Effect.provideService(
      run((yield* releasePerson)(person, reason)),
      CurrentOperator,
      operatorNamed(as),
    ).pipe(Effect.catchTags({
      Held: () => new CliFault({ message: "the installation is held: open it first" }),
      DependencyUnavailable: () => new CliFault({ message: "the database is busy: try again" }),
    }))
    if (ended === 0) return yield* new CliFault({ message: `no provider holds ${printable(person)}` })
    yield* Console.log(`${printable(person)} released, holds: ${ended}`)
  }, Effect.provide(services)),
).pipe(Command.withDescription("Ends all holds of a person on the operator's word; the directory decides from then on"))

export const signals = Command.make("signals").pipe(
  Command.withDescription("Security events of identity providers: who is held by them"),
  Command.withSubcommands([holds, release]),
)
