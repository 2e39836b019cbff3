/** `token`: an access token of a person or a service, signed with the key of the home's embedded issuer (DEMO). */
import { Clock, Console, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { defaultLifetime } from "../../services/people/AccessTokens.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../embedded/EmbeddedIssuer.ts"
import { CliFault } from "./CliFault.ts"
import { homeIssuer } from "./HomeIssuer.ts"
import { database } from "./Instance.ts"
import { durationFlag } from "./Times.ts"
import { quietCommand } from "../../services/platform/CommandSpelling.ts"

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

interface Speaker {
  readonly issuer: string | undefined
  readonly subject: string
  readonly clientId: string
}

/** A person's subject at their first issuer, or at the requested one. */
const personOf = Effect.fnUntraced(
  function* (id: string, issuer: Option.Option<string>, client: string) {
    const { sql } = yield* Database
    const wanted = Option.getOrNull(issuer)
    const [found] = yield* sql<{ issuer: string; subject: string }>`
      select i.issuer, i.subject from identities i join people p on i.person_id in (p.id, p.merged_into)
      where p.id = ${id} and coalesce(i.issuer = ${wanted}::text, true)
      order by (i.issuer, i.subject) = (p.issuer, p.subject) desc, i.linked_at limit 1`
    if (found === undefined) {
      return yield* new CliFault({
        message: `no person has the id ${id}${wanted === null ? "" : ` and an identity of ${wanted}`}: ` +
          `ids of the demo's people are in demo.json`,
      })
    }
    return { ...found, clientId: client } satisfies Speaker
  },
  Effect.provide(database),
)

const speakerOf = Effect.fnUntraced(function* (
  { client, issuer, person, service }: {
    readonly person: Option.Option<string>
    readonly service: Option.Option<string>
    readonly issuer: Option.Option<string>
    readonly client: string
  },
) {
  if (Option.isSome(person) && Option.isNone(service)) return yield* personOf(person.value, issuer, client)
  if (Option.isNone(person) && Option.isSome(service)) {
    const { value } = service
    return { issuer: Option.getOrUndefined(issuer), subject: value, clientId: value } satisfies Speaker
  }
  return yield* new CliFault({ message: "name either --person or --service" })
})

export const token = Command.make(
  "token",
  {
    person: text("person", "ID", "The person's id, as in demo.json"),
    service: text("service", "CLIENT_ID", "A service: its client id"),
    issuer: text("issuer", "URI", "The issuer's name, where it is not the person's own or the embedded one"),
    audience: Flag.String("audience").pipe(
      Flag.withMetavar("AUDIENCE"),
      Flag.withDescription("What the token is for (default service-management)"),
      Flag.withDefault("service-management"),
    ),
    client: Flag.String("client").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The client that a person uses (default bailiwick-cli)"),
      Flag.withDefault("bailiwick-cli"),
    ),
    sid: text("sid", "ID", "The session's id at the issuer"),
    acr: text("acr", "VALUE", "How strongly the person signed in, such as urn:service:aal2"),
    amr: text("amr", "a,b", "By which methods (RFC 8176)"),
    authenticatedAgo: durationFlag("authenticated-ago").pipe(
      Flag.withDescription("How long ago the person proved who they are (default 0s)"),
      Flag.withDefault(Duration.seconds(0)),
    ),
    ttl: durationFlag("ttl").pipe(
      Flag.withDescription("How long the token lasts (default 10m, at most 24h)"),
      Flag.withDefault(Duration.minutes(10)),
    ),
  },
  Effect.fn("cli.token")(
    function* ({ acr, amr, audience, authenticatedAgo, client, issuer, person, service, sid, ttl }) {
      if (Duration.isGreaterThan(ttl, defaultLifetime)) {
        return yield* new CliFault({
          message: "--ttl is longer than 24 hours: no such token is accepted; choose a shorter time",
        })
      }
      const embedded = yield* EmbeddedIssuer
      const now = yield* Clock.currentTimeMillis
      const speaker = yield* speakerOf({ person, service, issuer, client })
      const authTime = Math.floor((now - Duration.toMillis(authenticatedAgo)) / 1000)
      yield* Console.log(
        yield* embedded.mintAccessToken({
          ...speaker,
          audience,
          sid: Option.getOrUndefined(sid),
          acr: Option.getOrUndefined(acr),
          amr: Option.match(amr, { onNone: () => undefined, onSome: (list) => list.split(",") }),
          authTime: Option.isSome(person) ? authTime : null,
          ttl,
        }),
      )
    },
    Effect.provide(homeIssuer),
  ),
).pipe(
  Command.withDescription("Prints an access token of a person or a service, signed by the embedded issuer"),
  Command.withExamples([{
    command: `curl -H "Authorization: Bearer $(${quietCommand("token --person ID")})" http://127.0.0.1:8080/v1/me`,
    description: "Send a request as that person",
  }]),
)
