/** The base of account services, over this test file's own database and broker account. */
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AccountId } from "../../schemas/BrandedIds.ts"
import type { Plan } from "../../schemas/mail/MailAccount.ts"
import { Cookies } from "../../services/authentication/Cookies.ts"
import { mailKinds } from "../../services/accounts/MailKinds.ts"
import { Directory } from "../../services/directory/Directory.ts"
import { Notifications } from "../../services/notifications/Notifications.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { Mails } from "../../services/platform/mail/Mails.ts"
import { Outbox } from "../../services/platform/messaging/Outbox.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { TestBus } from "./TestBus.ts"
import { TestDatabase } from "./TestDatabase.ts"

const bus = Layer.unwrap(Effect.map(TestBus, ({ url }) => Bus.layer({ url }))).pipe(
  Layer.provideMerge(TestBus.layer),
)

/** Database, bus, outbox, mails, audit and the directory of the mail kinds. */
export const ground = Layer.merge(Directory.layer(mailKinds), Notifications.layer).pipe(
  Layer.provideMerge(Mails.layer),
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(bus),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(TestDatabase.layer),
)

const issuer = Layer.unwrap(Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-issuer-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true })),
  )
  return EmbeddedIssuer.layer({ home, issuer: "https://mail.example/dev/issuer" })
}))

/** An issuer with a key of its own, and Cookies that trust it alone. */
export const sessions = Layer.unwrap(
  Effect.map(EmbeddedIssuer, ({ cookieIssuer }) => Cookies.layer([cookieIssuer])),
).pipe(Layer.provideMerge(issuer))

/** The Cookie header of a person who signed in just now. */
export const signedIn = Effect.fnUntraced(function* (accountId: string) {
  return { cookie: `mail_session=${yield* (yield* EmbeddedIssuer).mintSession({ accountId })}` }
})

/** Puts a new active account through the directory and returns its id. */
export const account = Effect.fnUntraced(
  function* (fields: { readonly plan: Plan; readonly platform_admin?: boolean }) {
    const id = AccountId.make(randomUUID())
    yield* (yield* Directory).apply([JSON.stringify({
      kind: "account",
      id,
      version: 1,
      email: `${id}@example.com`,
      name: "Test",
      platform_admin: false,
      status: "active",
      ...fields,
    })])
    return id
  },
)
