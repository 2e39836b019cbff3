/**
 * The program with the demo's institution, used by its people, by an operator at the command line, and by the sample
 * product, which follows the demo's project.
 */
import { Effect, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { demoIdentityIds, demoIssuer } from "../../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import { connect } from "../../../src/cli/backup/BackupConnection.ts"
import { start } from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api, type ApiClient } from "./ApiClient.ts"
import { cli } from "./ProgramInstance.ts"
import { until } from "./Until.ts"
import { fixture as anyFixture, type Servers } from "./ProgramFixture.ts"

const defaultPublicUrl = "http://127.0.0.1:8080"
export const ids = demoIdentityIds
export type Who = "sam" | "ada" | "abe" | "oz" | "pat"

export const fixture = Effect.fnUntraced(function* (
  servers: Servers = {},
  more: Readonly<Record<string, string>> = {},
) {
  const database = servers.database ?? (yield* TestDatabase.make)
  const port = yield* Effect.orDie(freePort())
  const publicUrl = more["PUBLIC_URL"] ?? defaultPublicUrl
  const made = yield* anyFixture({
    DEMO: "true",
    MAIL_ISSUERS: "",
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    MANAGEMENT_READ_RATE: "0",
    MANAGEMENT_WRITE_RATE: "0",
    ...more,
  }, { ...servers, database })
  let env = made.env
  const issuer = EmbeddedIssuer.layer({ home: made.home, issuer: `${publicUrl}/dev/issuer` })

  /** Signed in just now, with two factors. */
  const as = (who: Who | { readonly subject: string }): Effect.Effect<ApiClient> =>
    Effect.gen(function* () {
      const { mintAccessToken } = yield* EmbeddedIssuer
      const subject = typeof who === "string" ? who : who.subject
      const token = yield* mintAccessToken({
        issuer: demoIssuer,
        subject,
        clientId: "portal",
        acr: "urn:service:aal2",
        amr: ["pwd", "otp"],
      })
      return api(made.instance.origin, { authorization: `Bearer ${token}` })
    }).pipe(Effect.provide(issuer))

  /** A POST with an idempotency key that must succeed. */
  const post = Effect.fnUntraced(function* (who: Who, path: string, body: object) {
    const reply = yield* (yield* as(who)).post(path, body, { headers: { "idempotency-key": randomUUID() } })
    if (reply.status >= 300) return yield* Effect.die(new Error(`${path}: ${reply.status} ${reply.text}`))
    return reply.json
  })

  const type = (...args: ReadonlyArray<string>) => cli(env, ...args)

  let files = 0
  /** Applies directory lines as a file, so that none is on the bus. Returns the command's output. */
  const apply = Effect.fnUntraced(function* (...lines: ReadonlyArray<object>) {
    const file = join(made.home, `lines-${files++}.ndjson`)
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
    const { code, output } = yield* type("directory", "apply", file)
    return code === 0 ? output : yield* Effect.die(new Error(output))
  })

  /** Rows of the program's current database. */
  const rows = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
    Effect.flatMap(
      connect(Redacted.make(env["DATABASE_URL"]!)),
      (db) => Effect.promise(() => db.rows<Row>(text, values)),
    ).pipe(Effect.scoped, Effect.orDie)

  /** Waits until the outbox is published. */
  const published = until(
    "everything published",
    rows<{ n: number }>(`
      select (select count(*)::int from outbox where published_at is null)
        + (select count(*)::int from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
          where h.position > 0 and (h.epoch, h.position) is distinct from (s.epoch, s.position)) as n`),
    ([row]) => row!.n === 0,
  )

  /** Approves a service's grant on a project; returns its id. */
  const grant = Effect.fnUntraced(function* (serviceId: string, projectId: string = ids.fernPortal) {
    const path = `/v1/projects/${projectId}/lifecycle-service-grants`
    const { id, version } = yield* post("sam", path, {
      service_id: serviceId,
      environment: "production",
      reason: "to keep in step with it",
      capabilities: ["events.read", "snapshot.read", "cursor.acknowledge"],
    })
    yield* post("ada", `${path}/${id}/approve`, { expected_version: version ?? 1, reason: "to keep in step with it" })
    return String(id)
  })

  /** Restarts the program with other variables, as another machine would. */
  const restart = Effect.fnUntraced(function* (changes: Readonly<Record<string, string>>) {
    env = { ...env, ...changes }
    yield* made.instance.start(changes)
  })
  const use = (changes: Readonly<Record<string, string>>) => Effect.sync(() => void (env = { ...env, ...changes }))

  /** A token of the service for lifecycle calls, and the pins of a new product. */
  const following = Effect.fnUntraced(function* (service: string) {
    const { json } = yield* made.api.get("/v1/lifecycle/jwks")
    const pins = (json.keys as ReadonlyArray<{ readonly kid: string }>).map(({ kid }) => kid)
    const { mintAccessToken } = yield* Effect.provide(EmbeddedIssuer, issuer)
    const audience = "service-lifecycle"
    const token = yield* mintAccessToken({ subject: service, clientId: service, audience, ttl: "1 hour" })
    return { pins: pins.join(","), token }
  })

  return {
    ...made,
    publicUrl,
    env: () => env,
    following,
    as,
    post,
    type,
    apply,
    rows,
    published,
    grant,
    restart,
    use,
    issuer,
  }
})
export type IdentityFixture = Effect.Success<ReturnType<typeof fixture>>

/** The sample product, following the demo's project as the service `product`, until the scope closes. */
export const product = Effect.fnUntraced(function* (
  { following, home, instance, publicUrl }: IdentityFixture,
) {
  const { pins, token } = yield* following("product")
  const program = yield* start({
    module: "examples/product/main.ts",
    env: {
      BAILIWICK_URL: instance.origin(),
      LIFECYCLE_ISSUER: `${publicUrl}/lifecycle`,
      PROJECT_ID: ids.fernPortal,
      LIFECYCLE_TOKEN: token,
      LIFECYCLE_PINS: pins,
      INSTALLED_VERSION: "1.0.0",
      PRODUCT_DB: join(home, "product.db"),
      PRODUCT_PORT: "0",
    },
  })
  const [, origin] = yield* program.line(/product on (\S+)/)
  /** The product's answer to a person of the demo's issuer who signed in at that time, by default just now. */
  const enter = (subject: string, issuedAt?: number) =>
    Effect.promise(async () => {
      const query = { issuer: demoIssuer, subject, ...(issuedAt === undefined ? {} : { issued_at: String(issuedAt) }) }
      const answer = await fetch(`${origin}/enter?${new URLSearchParams(query)}`)
      const { because, may } = await answer.json()
      return may === true ? "may" : String(because)
    })
  const enters = (subject: string, how: string) =>
    until(`${subject} at the door`, enter(subject), (told) => told === how)
  return { enter, enters, output: program.output, file: join(home, "product.db") }
})
