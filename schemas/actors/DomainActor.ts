/** The actor of one domain: runs the commands on its transfers, one at a time. Commands carry ids, never tokens. */
import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Accept, Cancel, Decline, Force, Initiate, Stop } from "../mail/DomainCommands.ts"
import { DomainTransfer } from "../mail/Transfer.ts"

/** The request that caused a command: audit records of the actor name it. */
export const Origin = Schema.Struct({
  requestId: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
})

const message = <
  const Tag extends string,
  F extends Schema.Struct.Fields,
  const Errors extends ReadonlyArray<Schema.Top>,
>(tag: Tag, { errors, fields }: { readonly fields: F; readonly errors: Errors }) =>
  Rpc.make(tag, { payload: { origin: Origin, ...fields }, success: DomainTransfer, error: Schema.Union(errors) })

export const DomainActor = Entity.make("Domain", [
  message("Initiate", Initiate),
  message("Accept", Accept),
  message("Decline", Decline),
  message("Cancel", Cancel),
  message("Stop", Stop),
  message("Force", Force),
])
