/** The behaviour of the `Domain` entity: each command is one call of the service, in its caller's name. */
import { Effect } from "effect"
import { Entity } from "effect/cluster"
import { DomainActor } from "../../schemas/actors/Domain.ts"
import { CurrentRequest } from "../../services/platform/CurrentRequest.ts"
import { Transfers } from "../../services/transfers/Transfers.ts"

interface Asked<P> {
  readonly payload: P & { readonly origin: (typeof CurrentRequest)["Service"] }
}

export const domainActor = DomainActor.toLayer(
  Effect.gen(function* () {
    const transfers = yield* Transfers
    const { entityId: domainId } = yield* Entity.CurrentAddress
    const inTheNameOf = <P, A, E>(call: (payload: P) => Effect.Effect<A, E>) => ({ payload }: Asked<P>) =>
      call(payload).pipe(Effect.provideService(CurrentRequest, payload.origin))
    return DomainActor.of({
      Initiate: ({ payload: { origin, ...command } }) =>
        transfers.initiate({ ...command, domainId }).pipe(Effect.provideService(CurrentRequest, origin)),
      Accept: inTheNameOf(transfers.accept),
      Decline: inTheNameOf(transfers.decline),
      Cancel: inTheNameOf(transfers.cancel),
      Stop: inTheNameOf(transfers.stop),
      Force: ({ payload: { origin, ...command } }) =>
        transfers.force({ ...command, domainId }).pipe(Effect.provideService(CurrentRequest, origin)),
    })
  }),
  { maxIdleTime: "1 minute", concurrency: 1, mailboxCapacity: 64 },
)
