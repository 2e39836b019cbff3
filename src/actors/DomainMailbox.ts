/**
 * Sends the commands on a domain's transfers, with the origin of their request: to the actor of the domain, or straight
 * to the service where the actor does not answer.
 */
import { Effect } from "effect"
import { DomainActor } from "../../schemas/actors/DomainActor.ts"
import type { DomainId } from "../../schemas/BrandedIds.ts"
import type {
  AcceptCommand,
  CancelCommand,
  DeclineCommand,
  ForceCommand,
  InitiateCommand,
  StopCommand,
} from "../../schemas/mail/DomainCommands.ts"
import { CurrentRequest } from "../../services/platform/observability/CurrentRequest.ts"
import { send } from "../../services/platform/messaging/Mailbox.ts"
import { Transfers } from "../../services/transfers/Transfers.ts"

type Origin = (typeof CurrentRequest)["Service"]

const ask = <C extends object, A, E, R, E2, R2>(
  command: C,
  actor: (message: C & { readonly origin: Origin }) => Effect.Effect<A, E, R>,
  direct: Effect.Effect<A, E2, R2>,
) => Effect.flatMap(CurrentRequest, (origin) => send(actor({ ...command, origin }), direct))

/** Each command answers with the transfer as it is after it, or with the failures of its declaration. */
export const domainMailbox = Effect.gen(function* () {
  const actor = yield* DomainActor.client
  const service = yield* Transfers
  return {
    initiate: ({ domainId, ...offer }: InitiateCommand) =>
      ask(offer, (message) => actor(domainId).Initiate(message), service.initiate({ ...offer, domainId })),
    accept: (domainId: DomainId, command: AcceptCommand) =>
      ask(command, (message) => actor(domainId).Accept(message), service.accept(command)),
    decline: (domainId: DomainId, command: DeclineCommand) =>
      ask(command, (message) => actor(domainId).Decline(message), service.decline(command)),
    cancel: (domainId: DomainId, command: CancelCommand) =>
      ask(command, (message) => actor(domainId).Cancel(message), service.cancel(command)),
    stop: (domainId: DomainId, command: StopCommand) =>
      ask(command, (message) => actor(domainId).Stop(message), service.stop(command)),
    force: ({ domainId, ...forced }: ForceCommand) =>
      ask(forced, (message) => actor(domainId).Force(message), service.force({ ...forced, domainId })),
  }
})
