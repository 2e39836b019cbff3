import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { load } from "../../src/AppConfig.ts"

const loaded = (environment: Record<string, string>) =>
  Effect.provide(load, ConfigProvider.layer(ConfigProvider.fromUnknown(environment)))

describe("SMTP_URL and MAIL_FROM", () => {
  it.effect("are a server and a sender, or neither", () =>
    Effect.gen(function* () {
      const url = "smtps://user:se%2Fcret@smtp.example.com:465"
      const config = yield* loaded({ SMTP_URL: url, MAIL_FROM: "Fern <no-reply@fern.example>" })
      assert.strictEqual(Redacted.value(config.smtpUrl!), url)
      assert.notInclude(JSON.stringify(config), "se%2Fcret")
      assert.deepStrictEqual(config.mailFrom, { name: "Fern", address: "no-reply@fern.example" })
      const without = yield* loaded({})
      assert.isNull(without.smtpUrl)
      assert.strictEqual(without.mailFrom.address, "no-reply@localhost")
    }))

  it.effect("that are wrong stop the start, and no secret is repeated", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(loaded({ SMTP_URL: "http://u:hidden@x", MAIL_FROM: "nobody" }))
      assert.match(message, /^SMTP_URL: is not a URL of the scheme smtp or smtps, for example SMTP_URL=/m)
      assert.match(message, /^MAIL_FROM: is neither an address nor a name with an address, for example MAIL_FROM=/m)
      assert.notInclude(message, "hidden")
      const alone = yield* Effect.flip(loaded({ SMTP_URL: "smtp://smtp.example.com" }))
      assert.match(alone.message, /^MAIL_FROM: is needed beside SMTP_URL/)
    }))
})
