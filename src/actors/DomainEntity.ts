/** The handlers of the `Domain` entity: each command is one service call with its request's origin. */
import { Effect } from "effect"
import { Entity } from "effect/cluster"
import { DomainActor } from "../../schemas/actors/DomainActor.ts"
import { DomainId } from "../../schemas/BrandedIds.ts"
import { Transfers } from "../../services/transfers/Transfers.ts"
import { asked } from "./Asked.ts"

export const domainActor = DomainActor.toLayer(
  Effect.gen(function* () {
    const transfers = yield* Transfers
    const domainId = DomainId.make((yield* Entity.CurrentAddress).entityId)
    return DomainActor.of({
      Initiate: asked((command) => transfers.initiate({ ...command, domainId })),
      Accept: asked(transfers.accept),
      Decline: asked(transfers.decline),
      Cancel: asked(transfers.cancel),
      Stop: asked(transfers.stop),
      Force: asked((command) => transfers.force({ ...command, domainId })),
    })
  }),
  { maxIdleTime: "1 minute", concurrency: 1, mailboxCapacity: 64 },
)
