/** Access tokens made on the command line, as the instance accepts them. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { accessTokens, managementAudience } from "../../../services/people/AccessTokens.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import * as Processes from "../../support/Processes.ts"
import { identity, person } from "../../support/TestIdentity.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { slow, type } from "./Terminal.ts"

const name = "https://mail.example/dev/issuer"

layer(identity, { excludeTestServices: true })("cli token", (it) => {
  it.effect(
    "prints a person's or a service's token, under the right name, and nothing else",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase
        const env = {
          DATABASE_URL: Redacted.value(database.url),
          DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
          PUBLIC_URL: "https://mail.example",
        }
        const home = yield* Processes.home
        const [ada, another] = [yield* person({ issuer: "https://id.example", subject: "ada" }), yield* person()]
        const early = yield* type(home, env, ["token", "--person", ada])
        assert.strictEqual(early.code, 1)
        assert.match(early.stderr, /^BAILIWICK_HOME=.* has no embedded issuer: .*DEMO/)

        const { tokenIssuer } = yield* Effect.provide(EmbeddedIssuer, EmbeddedIssuer.layer({ home, issuer: name }))
        const { verify } = yield* accessTokens({ audience: managementAudience, issuers: () => tokenIssuer })
        const before = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
        const [adas, services, nobodys, both, long] = yield* Effect.all([
          type(home, env, [
            ...["token", "--person", ada, "--client", "portal", "--sid", "s1", "--acr", "urn:service:aal2"],
            ...["--amr", "pwd,otp", "--authenticated-ago", "10 minutes", "--ttl", "5m"],
          ]),
          type(home, env, ["token", "--service", "hr-sync", "--issuer", "https://id.example"]),
          type(home, env, ["token", "--person", another, "--issuer", "https://nowhere.example"]),
          type(home, env, ["token", "--person", another, "--service", "hr-sync"]),
          type(home, env, ["token", "--person", ada, "--ttl", "25h"]),
        ], { concurrency: 2 })
        assert.deepStrictEqual([adas.code, adas.stderr], [0, ""])
        assert.match(adas.stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
        const token = yield* verify(adas.stdout.trim())
        assert.deepInclude(token, {
          via: "person",
          issuer: "https://id.example",
          subject: "ada",
          clientId: "portal",
          sid: "s1",
          acr: "urn:service:aal2",
          amr: ["pwd", "otp"],
          aal: "aal2",
        })
        assert.isAtLeast(token.authTime!, before - 600)
        assert.isAtMost(token.authTime!, token.issuedAt - 600)
        assert.strictEqual(token.expiresAt - token.issuedAt, 300)
        assert.deepInclude(yield* verify(services.stdout.trim()), {
          via: "service",
          issuer: "https://id.example",
          clientId: "hr-sync",
          authTime: null,
        })
        assert.strictEqual(nobodys.code, 1)
        assert.match(nobodys.stderr, /^no person has the id .* and an identity of https:\/\/nowhere\.example/)
        assert.strictEqual(long.code, 1)
        assert.match(long.stderr, /^--ttl is longer than 24 hours/)
        assert.deepStrictEqual([both.code, both.stderr], [1, "name either --person or --service\n"])
      }),
    slow,
  )
})
