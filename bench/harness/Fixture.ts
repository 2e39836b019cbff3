/** Four accounts with five webhooks each; every event has exactly one webhook that listens (a fan-out of one). */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import { publishOn } from "../../services/platform/messaging/Bus/Publisher.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { Vault } from "../../services/platform/security/Vault.ts"
import { generateSecret } from "../../services/webhooks/Signer.ts"
import { Redacted, Result } from "effect"
import type { NatsConnection } from "@nats-io/transport-node"
import { BenchError } from "./Child.ts"

export interface Hook {
  readonly id: WebhookId
  readonly accountId: AccountId
  readonly event: string
  readonly url: string
  readonly secret: string
}

const types = ["email.sent", "email.delivered", "email.opened", "email.clicked", "email.bounced"]

/** The webhooks, each account's on one port of the sink. */
export const hooksOn = (ports: ReadonlyArray<number>): ReadonlyArray<Hook> =>
  ports.flatMap((port) => {
    const accountId = AccountId.make(randomUUID())
    return types.map((event) => ({
      id: WebhookId.make(randomUUID()),
      accountId,
      event,
      url: `http://127.0.0.1:${port}/hooks/${event}`,
      secret: generateSecret(),
    }))
  })

/** Writes accounts and webhooks as the API would have, secrets sealed under the ring in `keysFile`. */
export const fill = (hooks: ReadonlyArray<Hook>, keysFile: string) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    const vault = yield* Vault
    const now = new Date()
    for (const id of new Set(hooks.map((hook) => hook.accountId))) {
      yield* owner`insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
        values (${id}::uuid, 1, false, ${now}, ${`${id}@example.com`}, 'Bench', 'business', false, 'active')`
    }
    for (const { accountId, event, id, secret, url } of hooks) {
      const { bytes, kid } = vault.seal(Redacted.make(secret), { table: "webhooks", column: "secret", row: id })
      yield* owner`insert into webhooks
        (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at)
        values (${id}::uuid, ${accountId}::uuid, ${url}, array[${event}], true, 1, ${kid}, ${bytes}, ${now}, ${now})`
      yield* owner`insert into webhook_lanes (webhook_id, account_id) values (${id}::uuid, ${accountId}::uuid)`
    }
  }).pipe(Effect.provide(Vault.layer({ file: keysFile })))

/** The message of event `n`, about 400 bytes. */
export const eventOf = (hooks: ReadonlyArray<Hook>, n: number) => {
  const { accountId, event } = hooks[n % hooks.length]!
  return {
    id: `evt-${n}`,
    event,
    account_id: accountId,
    email_id: `0199c0de-0000-7000-8000-${String(n).padStart(12, "0")}`,
    recipient: `someone-${n}@customer.example`,
    timestamp: "2026-01-01T12:00:00.000Z",
    metadata: {
      subject: "Your order has been shipped",
      tag: "orders",
      domain: "shop.example",
      smtp_response: "250 2.0.0 OK 1767268800 a1-20020a05600c0b4100b003fe1fe56202si1234567wmr.1",
    },
  }
}

export const subjectOf = (event: string): string => `intake.v1.mail-events.${event.slice("email.".length)}`

/** Publishes events `from` … `to` - 1, each acknowledged. */
export const publish = (nc: NatsConnection, hooks: ReadonlyArray<Hook>, from: number, to: number) =>
  Effect.gen(function* () {
    for (let at = from; at < to; at += 500) {
      const outcomes = yield* Effect.promise(() =>
        Promise.all(Array.from({ length: Math.min(500, to - at) }, (_, i) => {
          const event = eventOf(hooks, at + i)
          const message = { subject: subjectOf(event.event), data: JSON.stringify(event) }
          return publishOn(nc, { ...message, msgId: `${event.account_id}.${event.id}` }, 10_000)
        }))
      )
      const refused = outcomes.find(Result.isFailure)
      if (refused !== undefined) return yield* new BenchError({ message: `publishing: ${refused.failure.detail}` })
    }
  })
