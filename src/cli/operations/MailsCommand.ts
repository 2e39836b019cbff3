/** `mails`: mails that have not been sent, and what the mail server said last. */
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { outgoingMail } from "../../../services/operations/OperatorMails.ts"
import { MailUpkeep } from "../../../services/platform/mail/MailUpkeep.ts"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { busIfKnown, database } from "../Instance.ts"
import { limitFlag, listFlags, printRows } from "../RowOutput.ts"

const services = MailUpkeep.layer.pipe(
  Layer.provide(WakeUps.layer),
  Layer.provide(busIfKnown),
  Layer.provideMerge(database),
)

export const mails = Command.make(
  "mails",
  {
    ...listFlags,
    limit: limitFlag,
    state: Flag.Literals("state", ["failed", "unknown", "pending"]).pipe(
      Flag.withDescription("Of this state (default failed); unknown: an attempt ended without an answer"),
      Flag.withDefault("failed"),
    ),
  },
  Effect.fn("cli.mails")(function* ({ limit, state, ...how }) {
    const found = yield* (yield* MailUpkeep).list(state, limit, undefined)
    yield* printRows(
      found.mails.map(outgoingMail),
      ({ attempts, created_at, id, kind, last_error, next_attempt_at, recipient }) => ({
        id,
        created_at,
        kind,
        recipient,
        attempts,
        next_attempt_at,
        last_answer: last_error,
      }),
      how,
      `no mail is ${state}`,
    )
  }, Effect.provide(services)),
).pipe(Command.withDescription("Lists mails that have not been sent, newest first; recipients are masked"))
