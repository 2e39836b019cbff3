import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { WebhookId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { Endpoints } from "../../../services/webhooks/Endpoints.ts"
import { sizeOf } from "../../support/SizeOf.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { vault } from "../../support/TestVault.ts"

const outbound = Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 1_000, ownPorts: [] })
const services = Endpoints.layer.pipe(
  Layer.provideMerge(Layer.merge(vault, outbound)),
  Layer.provideMerge(TestDatabase.layer),
)

it.live("at most 20,000 endpoints are cached, and one that left the cache is read again", () =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const { seal } = yield* Vault
    const { get } = yield* Endpoints
    const ids = Array.from({ length: 20_200 }, () => WebhookId.make(crypto.randomUUID()))
    const sealed = ids.map((row) => seal(Redacted.make(`whsec_${row}`), { table: "webhooks", column: "secret", row }))
    const secrets = sealed.map(({ bytes }) => Buffer.from(bytes).toString("hex"))
    yield* sql`
      insert into webhooks (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at)
      select id, id, 'https://hook.test/' || id, '{email.sent}', true, 1, ${sealed[0]!.kid}, decode(secret, 'hex'), t, t
      from unnest(${ids}::uuid[], ${secrets}::text[]) w(id, secret), (select ${new Date()}::timestamptz) n(t)`
    for (let from = 0; from < ids.length; from += 1_000) {
      const keys = ids.slice(from, from + 1_000).map((webhookId) => ({ webhookId, version: 1 }))
      assert.strictEqual((yield* get(keys)).size, keys.length)
    }
    assert.strictEqual(yield* sizeOf("webhook endpoints"), 20_000)
    const again = yield* get([{ webhookId: ids[0]!, version: 1 }])
    assert.strictEqual(again.get(ids[0]!)?.secret, `whsec_${ids[0]}`)
  }).pipe(Effect.provide(services)))
