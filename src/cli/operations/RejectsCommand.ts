/** `rejects`: messages that could not be taken in, and why. */
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { intakeReject } from "../../../services/operations/OperatorRejects.ts"
import { RejectUpkeep } from "../../../services/platform/messaging/RejectUpkeep.ts"
import { database } from "../Instance.ts"
import { limitFlag, listFlags, printRows } from "../RowOutput.ts"

export const rejects = Command.make(
  "rejects",
  {
    ...listFlags,
    limit: limitFlag,
    state: Flag.Literals("state", ["rejected", "waiting"]).pipe(
      Flag.withDescription("Of this state (default rejected); waiting: its account is not known yet"),
      Flag.withDefault("rejected"),
    ),
  },
  Effect.fn("cli.rejects")(function* ({ limit, state, ...how }) {
    const found = yield* (yield* RejectUpkeep).list(state, limit, undefined)
    yield* printRows(
      found.rejects.map(intakeReject),
      ({ account_id, detail, id, raw, reason, received_at, stream, stream_seq, subject, waits_until }) => ({
        id,
        received_at,
        subject,
        place: `${stream} ${stream_seq}`,
        account_id,
        reason: detail === null ? reason : `${reason}: ${detail}`,
        waits_until,
        content: raw,
      }),
      how,
      `no message is ${state}`,
    )
  }, Effect.provide(Layer.provideMerge(RejectUpkeep.layer, database))),
).pipe(Command.withDescription("Lists messages that could not be taken in, newest first"))
