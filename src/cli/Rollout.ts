/** `rollout`: lets an operator stop a project's rollout that goes wrong (docs/requests.md). */
import { Console, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { ProjectId } from "../../schemas/BrandedIds.ts"
import { heldRollouts } from "../../services/operations/HeldRollouts.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { PolicyReviews } from "../../services/requests/PolicyReviews.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { Timers } from "../../services/platform/database/Timers.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { type RolloutAction, Rollouts } from "../../services/projects/Rollouts.ts"
import { CliFault } from "./CliFault.ts"
import { busIfKnown, database } from "./Instance.ts"
import { asFlag, operatorNamed } from "./OperatorName.ts"
import { printable } from "./EscapeControls.ts"
import { limitFlag, listFlags, printRows } from "./RowOutput.ts"

const services = Rollouts.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(PolicyReviews.layer, EventLog.layer, Timers.layer, Jobs.layer)),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

const flags = {
  as: asFlag,
  project: Flag.String("project").pipe(
    Flag.withSchema(ProjectId),
    Flag.withMetavar("ID"),
    Flag.withDescription("The project"),
  ),
  reason: Flag.String("reason").pipe(
    Flag.withDescription("Why, for the audit: 8 to 500 characters"),
    Flag.filter((text) => [...text].length >= 8 && [...text].length <= 500, () => "a reason of 8 to 500 characters"),
  ),
}

const told = Effect.fnUntraced(function* (action: RolloutAction, project: ProjectId, reason: string) {
  const done = yield* run((yield* Rollouts).set(project, action, reason)).pipe(
    Effect.catchTags({
      NotFound: () => new CliFault({ message: `there is no project ${printable(project)}` }),
      InvalidState: () => new CliFault({ message: `project ${printable(project)} is withdrawn` }),
      DependencyUnavailable: () => new CliFault({ message: "the database is busy: try again" }),
    }),
  )
  if (done === null) return yield* Console.log(`${project} unchanged`)
  const job = done.jobId === null ? "" : `, job ${done.jobId}`
  yield* Console.log(`${project} ${done.state}, version ${done.version}${job}`)
})

const named = (action: RolloutAction, description: string) =>
  Command.make(
    action,
    flags,
    Effect.fn(`cli.rollout.${action}`)(
      ({ as, project, reason }) =>
        Effect.provideService(told(action, project, reason), CurrentOperator, operatorNamed(as)),
      Effect.provide(services),
    ),
  ).pipe(Command.withDescription(description))

const list = Command.make(
  "list",
  { ...listFlags, limit: limitFlag },
  Effect.fn("cli.rollout.list")(function* ({ limit, ...how }) {
    const { items } = yield* heldRollouts((yield* Database).sql, { limit, afterId: undefined })
    yield* printRows(
      items,
      ({ environment, institution_name, name, project_id, rollout, state, version }) => ({
        project_id,
        name,
        institution: institution_name,
        environment,
        rollout: rollout === "fail" ? "failed" : "held",
        state,
        version,
      }),
      how,
      "no rollout is held",
    )
  }, Effect.provide(database)),
).pipe(Command.withDescription("Lists projects whose rollout is held or has failed"))

export const rollout = Command.make("rollout").pipe(
  Command.withDescription("Holds back what a project's rollout would activate"),
  Command.withSubcommands([
    list,
    named("hold", "Nothing new is activated in the project until it is released"),
    named("fail", "Disables the project's client, ends its sessions, and holds it"),
    named("release", "Ends a hold; sessions and rights that were ended meanwhile are not given back"),
  ]),
)
