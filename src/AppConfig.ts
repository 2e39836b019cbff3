/**
 * The configuration (docs/configuration.md), read once. Wrong values stop the start: all of them are reported together,
 * one line each with the variable, the fault and an example. No value is repeated, since some are secrets.
 */
import { Config, Effect, Option, Redacted, Result, Schema } from "effect"
import { join, resolve } from "node:path"
import type { BrandShape } from "../services/platform/Brand.ts"
import type { MailSender } from "../services/platform/mail/MailSender.ts"
import type { RetrySchedule } from "../services/webhooks/RetrySchedule.ts"
import { type IdentityDirectory, type Values, type Variable, variables } from "./AppConfig/Variables.ts"

export { identityDirectories, type IdentityDirectory, type Role, roles } from "./AppConfig/Variables.ts"

/** The faults of the configuration, one line per wrong variable. */
export class ConfigFault extends Schema.TaggedError<ConfigFault>()("ConfigFault", { message: Schema.String }) {}

const loopbackHosts = new Set(["127.0.0.1", "::1", "localhost"])

const isLoopback = (address: string): boolean => {
  const parsed = URL.parse(address)
  return parsed !== null && loopbackHosts.has(parsed.hostname.replace(/^\[|\]$/g, ""))
}

/** Why DEMO may not be on, or null. DEMO lets every user in who can read the home. */
const demoFault = (values: Values): string | null => {
  if (!loopbackHosts.has(values.host)) return "DEMO: starts on a loopback HOST only, for example HOST=127.0.0.1"
  if (values.publicUrl !== null && !isLoopback(values.publicUrl)) {
    return "DEMO: starts with a loopback PUBLIC_URL only, for example PUBLIC_URL=http://127.0.0.1:8080"
  }
  const issuers = ["mailIssuers", "managementIssuers", "lifecycleIssuers", "consoleIssuers"] as const
  const own = issuers.find((key) => values[key].length > 0)
  return own === undefined ? null : `DEMO: does not go with ${variables[own].name}, for example DEMO=false`
}

/** Without SMTP_URL no mail leaves this machine, so MAIL_FROM may be anything. */
const mailFault = ({ mailFrom, smtpUrl }: Values): string | null =>
  smtpUrl !== null && mailFrom === null
    ? `MAIL_FROM: is needed beside SMTP_URL, for example MAIL_FROM=${variables.mailFrom.example}`
    : null

/** The console signs people in at issuers that an API trusts: the tokens of any other issuer would be refused. */
const consoleFault = ({ consoleIssuers, mailIssuers, managementIssuers }: Values): string | null => {
  const trusted = new Set([...mailIssuers, ...managementIssuers].map(({ issuer }) => issuer))
  return consoleIssuers.every(({ issuer }) => trusted.has(issuer))
    ? null
    : "CONSOLE_ISSUERS: has an issuer that is in " +
      `neither MANAGEMENT_ISSUERS nor MAIL_ISSUERS, for example CONSOLE_ISSUERS=${variables.consoleIssuers.example}`
}

/** The origin of a server that listens at this host and port. */
export const originAt = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `http://${host.includes(":") ? `[${host}]` : host}:${port}`

/** Refuses an option for an external server whose URL is missing: the embedded server would silently take its place. */
const serverFault = ({ databaseOwnerUrl, databaseUrl, natsCreds, natsReplicas, natsUrl }: Values): string | null => {
  const needed = (one: "databaseUrl" | "natsUrl", beside: "databaseOwnerUrl" | "natsCreds" | "natsReplicas") =>
    `${variables[one].name}: is needed beside ${variables[beside].name}, for example ` +
    `${variables[one].name}=${variables[one].example}`
  if (databaseOwnerUrl !== null && databaseUrl === null) return needed("databaseUrl", "databaseOwnerUrl")
  if (natsUrl !== null) return null
  if (natsCreds !== null) return needed("natsUrl", "natsCreds")
  return natsReplicas !== null && natsReplicas > 1 ? needed("natsUrl", "natsReplicas") : null
}

export interface AppConfig extends
  Omit<
    Values,
    | "home"
    | "demo"
    | "databaseUrl"
    | "databaseOwnerUrl"
    | "natsUrl"
    | "keys"
    | "smtpUrl"
    | "mailFrom"
    | "identityDirectory"
    | "identityProvider"
    | "brandName"
    | "brandColor"
    | "brandLogo"
  > {
  /** Absolute. */
  readonly home: string
  readonly demo: boolean
  readonly databaseUrl: Redacted.Redacted | null
  readonly databaseOwnerUrl: Redacted.Redacted | null
  readonly natsUrl: Redacted.Redacted | null
  readonly keys: Redacted.Redacted | null
  readonly smtpUrl: Redacted.Redacted | null
  readonly mailFrom: MailSender
  readonly identityDirectory: IdentityDirectory
  /** The provider that registers clients (RFC 7591); null: the embedded provider. */
  readonly identityProvider: {
    readonly registrationEndpoint: string
    readonly initialAccessToken: Redacted.Redacted | null
  } | null
  readonly schedule: RetrySchedule
  readonly brand: BrandShape
}

const secret = (text: string | null) => text === null ? null : Redacted.make(text)

const decide = (values: Values): AppConfig => {
  const embedded = values.databaseUrl === null
  const demo = values.demo ?? (embedded && demoFault(values) === null)
  const home = resolve(values.home)
  return {
    ...values,
    home,
    demo,
    databaseUrl: secret(values.databaseUrl),
    databaseOwnerUrl: secret(values.databaseOwnerUrl),
    natsUrl: secret(values.natsUrl),
    keys: secret(values.keys),
    smtpUrl: secret(values.smtpUrl),
    mailFrom: values.mailFrom ?? { name: values.brandName, address: "no-reply@localhost" },
    identityProvider: values.identityProvider === null ? null : {
      registrationEndpoint: values.identityProvider.registration_endpoint,
      initialAccessToken: secret(values.identityProvider.initial_access_token ?? null),
    },
    identityDirectory: values.identityDirectory ?? (demo ? "follow" : "files"),
    keysFile: values.keysFile ?? join(home, "keys.json"),
    allowedCidrs: values.allowedCidrs ?? (demo ? ["127.0.0.0/8", "::1/128"] : []),
    schedule: { delays: values.retryDelays, jitter: values.retryJitter },
    brand: { name: values.brandName, shades: values.brandColor, logo: values.brandLogo },
  }
}

/** The configuration, or every fault of it. An empty variable counts as not set. */
export const load: Effect.Effect<AppConfig, ConfigFault> = Effect.gen(function* () {
  const values: Record<string, unknown> = {}
  const faults: Array<string> = []
  for (const [key, { example, fallback, name, parse }] of Object.entries<Variable<unknown>>(variables)) {
    const text = yield* Config.option(Config.String(name)).pipe(Effect.orDie)
    if (Option.isNone(text) || text.value === "") {
      values[key] = fallback
      continue
    }
    const parsed = parse(text.value)
    if (Result.isSuccess(parsed)) values[key] = parsed.success
    else faults.push(`${name}: ${parsed.failure}, for example ${name}=${example}`)
  }
  if (faults.length === 0) {
    const all = values as unknown as Values
    const refused = (all.demo === true ? demoFault(all) : null) ?? mailFault(all) ?? serverFault(all) ??
      consoleFault(all)
    if (refused === null) return decide(all)
    faults.push(refused)
  }
  return yield* new ConfigFault({ message: faults.join("\n") })
})
