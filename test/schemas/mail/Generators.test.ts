import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { NewApiKey } from "../../../schemas/api/ApiKeysApi.ts"
import { ApiKeyView, CreatedApiKey } from "../../../schemas/mail/ApiKey.ts"
import * as Feed from "../../../schemas/mail/MailDirectory.ts"

const schemas: Record<string, Schema.Codec<unknown, unknown>> = {
  NewApiKey,
  ApiKeyView,
  CreatedApiKey,
  AccountFields: Feed.AccountFields,
  WorkspaceFields: Feed.WorkspaceFields,
  WorkspaceMembershipFields: Feed.WorkspaceMembershipFields,
  DomainFields: Feed.DomainFields,
  BroadcastFields: Feed.BroadcastFields,
  ScheduledEmailFields: Feed.ScheduledEmailFields,
  SmtpCredentialFields: Feed.SmtpCredentialFields,
}

for (const [name, schema] of Object.entries(schemas)) {
  it.effect(`${name} generates values that it accepts`, () =>
    Effect.gen(function* () {
      const values = yield* Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: 50, seed: 1 })
      assert.lengthOf(values, 50)
      for (const value of values) {
        const encoded = yield* Schema.encodeUnknownEffect(schema)(value)
        yield* Schema.decodeUnknownEffect(schema)(encoded)
      }
    }))
}
