/**
 * The surroundings of one running program: a database, a broker, an issuer of sessions, an authority for receivers. A
 * test uses the program from outside only: HTTP, the bus, its files and its command line.
 */
import { Effect, Redacted, type Scope } from "effect"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeAuthority } from "../../services/platform/Outbound/Certificates.ts"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"
import { type BrokerPlace, urlOf } from "../../support/BrokerAccess.ts"
import { home as emptyHome } from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api, type ApiClient } from "./ApiClient.ts"
import { documentedMessages } from "./DocumentedMessages.ts"
import { type EventFeed, feed } from "./EventFeed.ts"
import { instance, type ProgramInstance } from "./ProgramInstance.ts"
import { until } from "./Until.ts"

export type Plan = "free" | "starter" | "pro" | "business"

export interface Account {
  readonly id: string
  /** With an API key. */
  readonly api: ApiClient
  readonly key: string
  /** As a signed-in person. */
  readonly session: ApiClient
}

export interface ProgramFixture {
  readonly instance: ProgramInstance
  readonly env: Readonly<Record<string, string>>
  readonly home: string
  /** Without a credential. */
  readonly api: ApiClient
  readonly feed: EventFeed
  /** A certificate for `localhost` that the program trusts. */
  readonly tls: { readonly cert: string; readonly key: string }
  /** Puts an account into the directory and waits until it may sign in. */
  readonly account: (fields?: { readonly plan?: Plan; readonly id?: string }) => Effect.Effect<Account>
  /** A session; `authTime`, in seconds since the epoch, is the time of the sign-in. */
  readonly cookie: (accountId: string, authTime?: number) => Effect.Effect<Readonly<Record<string, string>>>
  /** Where people sign in, `withPeople`. */
  readonly people: People
}

export interface People {
  readonly issuer: string
  readonly configuration: string
  /** The Authorization header of a person of that issuer, signed in just now with two factors. */
  readonly bearer: (subject: string) => Effect.Effect<Readonly<Record<string, string>>>
}

/** The directory's line of an account. */
export const accountLine = (id: string, plan: Plan = "business", version = 1) =>
  JSON.stringify({
    kind: "account",
    id,
    version,
    email: `${id}@example.com`,
    name: "Somebody",
    plan,
    platform_admin: false,
    status: "active",
  })

/** An issuer of sessions, and the program's configuration of it. */
export const issuer = Effect.gen(function* () {
  const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair("ES256"))
  const jwk = { ...(yield* Effect.promise(() => exportJWK(publicKey))), kid: "e2e", alg: "ES256", use: "sig" }
  const { port } = yield* serve((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys: [jwk] }))
  })
  const name = `http://127.0.0.1:${port}`
  const cookie: ProgramFixture["cookie"] = (accountId, authTime) =>
    Effect.map(
      Effect.promise(() =>
        new SignJWT(authTime === undefined ? {} : { auth_time: authTime }).setProtectedHeader({
          alg: "ES256",
          kid: "e2e",
        }).setIssuer(name).setAudience("mail")
          .setSubject(accountId).setIssuedAt().setExpirationTime("1h").sign(privateKey)
      ),
      (token) => ({ cookie: `mail_session=${token}` }),
    )
  const bearer: People["bearer"] = (subject) =>
    Effect.map(
      Effect.promise(() =>
        new SignJWT({ client_id: "portal", acr: "urn:service:aal2", auth_time: Math.floor(Date.now() / 1000) })
          .setProtectedHeader({ alg: "ES256", kid: "e2e", typ: "at+jwt" }).setIssuer(name).setSubject(subject)
          .setAudience("service-management").setJti(randomUUID()).setIssuedAt().setExpirationTime("5m").sign(privateKey)
      ),
      (token) => ({ authorization: `Bearer ${token}` }),
    )
  const configuration = JSON.stringify([{ issuer: name, jwks_uri: `${name}/jwks` }])
  return { cookie, configuration, people: { issuer: name, configuration, bearer } }
})

export interface Servers {
  readonly database?: { readonly url: Redacted.Redacted; readonly ownerUrl: Redacted.Redacted }
  readonly natsUrl?: BrokerPlace
  /** The runtime of the program, where it is not the run's own. */
  readonly command?: ReadonlyArray<string>
  /** The module that is run instead of `src/main.ts`. */
  readonly module?: string
  /** People sign in at the fixture's issuer, and the directory is followed on the bus. */
  readonly withPeople?: true
}

/** A running program with `env` beside the variables it needs; on the run's own servers by default. */
export const fixture = Effect.fnUntraced(function* (
  env: Readonly<Record<string, string>> = {},
  servers: Servers = {},
): Effect.fn.Return<ProgramFixture, never, Scope.Scope> {
  const home = yield* emptyHome
  const database = servers.database ?? (yield* TestDatabase.make)
  const natsUrl = servers.natsUrl ?? (yield* TestBus.make).url
  const { configuration, cookie, people } = yield* issuer
  const authority = makeAuthority("Receivers")
  const caFile = join(home, "receivers.pem")
  writeFileSync(caFile, authority.certificate)
  const environment = {
    BAILIWICK_HOME: home,
    PORT: "0",
    DATABASE_URL: Redacted.value(database.url),
    DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
    NATS_URL: Redacted.value(urlOf(natsUrl)),
    MAIL_ISSUERS: configuration,
    WEBHOOKS_CA_FILE: caFile,
    WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8",
    LOG_FORMAT: "json",
    LOG_LEVEL: "warn",
    ...(servers.withPeople ? { MANAGEMENT_ISSUERS: people.configuration, IDENTITY_DIRECTORY: "follow" } : {}),
    ...env,
  }
  const running = yield* instance(environment, {
    ...(servers.command === undefined ? {} : { command: servers.command }),
    ...(servers.module === undefined ? {} : { module: servers.module }),
  })
  const messages = yield* documentedMessages(natsUrl)
  yield* running.start()
  yield* messages.check(api(running.origin))
  const events = yield* feed(natsUrl)

  const account: ProgramFixture["account"] = Effect.fnUntraced(
    function* ({ id = randomUUID(), plan = "business" } = {}) {
      yield* events.publish("intake.v1.directory.account", accountLine(id, plan))
      const session = api(running.origin, yield* cookie(id))
      yield* until("the account", session.get("/v1/api-keys/"), ({ status }) => status === 200)
      const { json } = yield* session.post("/v1/api-keys/", { name: "e2e" })
      const key: string = json.key
      return { id, key, session, api: api(running.origin, { authorization: `Bearer ${key}` }) }
    },
    Effect.orDie,
  )

  return {
    instance: running,
    env: environment,
    home,
    api: api(running.origin),
    feed: events,
    tls: authority.issue("localhost"),
    account,
    cookie,
    people,
  }
})
