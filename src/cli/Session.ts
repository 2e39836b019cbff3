/**
 * `session`: makes a session for an account without a sign-in page, with the key of the home's embedded issuer (DEMO).
 */
import { Clock, Console, Duration, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { isUuid } from "../../schemas/Wire.ts"
import { EmbeddedIssuer } from "../embedded/EmbeddedIssuer.ts"
import { homeIssuer } from "./HomeIssuer.ts"
import { durationFlag } from "./Times.ts"
import { quietCommand } from "../../services/platform/CommandSpelling.ts"

const account = Flag.String("account").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The account's id, as in demo.json"),
  Flag.filter(isUuid, () => "a UUID, the id of an account"),
)

export const session = Command.make(
  "session",
  {
    account,
    authenticatedAgo: durationFlag("authenticated-ago").pipe(
      Flag.withDescription("How long ago the person proved who they are (default 0s)"),
      Flag.withDefault(Duration.seconds(0)),
    ),
    ttl: durationFlag("ttl").pipe(
      Flag.withDescription("How long the session lasts (default 1h)"),
      Flag.withDefault(Duration.hours(1)),
    ),
  },
  Effect.fn("cli.session")(function* ({ account, authenticatedAgo, ttl }) {
    const now = yield* Clock.currentTimeMillis
    const authTime = Math.floor((now - Duration.toMillis(authenticatedAgo)) / 1000)
    yield* Console.log(yield* (yield* EmbeddedIssuer).mintSession({ accountId: account, authTime, ttl }))
  }, Effect.provide(homeIssuer)),
).pipe(
  Command.withDescription("Prints the value of a mail_session cookie for an account, signed by the embedded issuer"),
  Command.withExamples([{
    command: `curl -H "Cookie: mail_session=$(${
      quietCommand("session --account ID")
    })" http://127.0.0.1:8080/v1/webhooks`,
    description: "Send a request as that account",
  }]),
)
