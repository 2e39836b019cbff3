/** `session`: signs somebody in without a sign-in page, with the key of the home's embedded issuer (DEMO). */
import { Clock, Console, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { isUuid } from "../../schemas/Wire.ts"
import { EmbeddedIssuer, issuerKeyFile } from "../embedded/EmbeddedIssuer.ts"
import { CliFault } from "./CliFault.ts"
import { instance } from "./Instance.ts"
import { durationFlag } from "./Times.ts"

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
      Flag.withDescription("How long ago the person proved who they are"),
      Flag.withDefault(Duration.seconds(0)),
    ),
    ttl: durationFlag("ttl").pipe(
      Flag.withDescription("How long the session lasts"),
      Flag.withDefault(Duration.hours(1)),
    ),
  },
  Effect.fn("cli.session")(function* ({ account, authenticatedAgo, ttl }) {
    const { config, runtime } = yield* instance
    if (!existsSync(join(config.home, issuerKeyFile))) {
      return yield* new CliFault({
        message: `BAILIWICK_HOME=${config.home} has no embedded issuer: type "deno task start" once with DEMO=true`,
      })
    }
    const origin = config.publicUrl ?? Option.match(runtime, {
      onNone: () => `http://${config.host}:${config.port}`,
      onSome: ({ http_url, public_url }) => public_url ?? http_url,
    })
    const now = yield* Clock.currentTimeMillis
    const authTime = Math.floor((now - Duration.toMillis(authenticatedAgo)) / 1000)
    const cookie = yield* EmbeddedIssuer.use(({ mintSession }) => mintSession({ accountId: account, authTime, ttl }))
      .pipe(
        Effect.provide(EmbeddedIssuer.layer({ home: config.home, issuer: issuerOf(origin) })),
      )
    yield* Console.log(cookie)
  }),
).pipe(
  Command.withDescription("Prints the value of a mail_session cookie for an account, signed by the embedded issuer"),
  Command.withExamples([{
    command:
      `curl -H "Cookie: mail_session=$(deno task -q cli session --account ID)" http://127.0.0.1:8080/v1/webhooks`,
    description: "Ask as that account",
  }]),
)

/** As the program names it. */
const issuerOf = (origin: string) => new URL("/dev/issuer", origin).href
