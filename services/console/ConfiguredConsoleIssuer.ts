/** The configuration of an issuer that people sign in to the console at; the code that does so is loaded later. */
import { type Redacted, Schema } from "effect"

const Word = Schema.String.check(Schema.isPattern(/^\S+$/))

/** One of `CONSOLE_ISSUERS`, as the variable has it. */
export const ConfiguredConsoleIssuer = Schema.Struct({
  issuer: Word,
  client_id: Word,
  client_secret_file: Schema.optionalKey(Schema.NonEmptyString),
  name: Schema.optionalKey(Schema.NonEmptyString),
  scope: Schema.optionalKey(Schema.NonEmptyString),
  resource: Schema.optionalKey(Word),
})

/** An issuer, and this program's client there. */
export interface ConsoleIssuer {
  /** As `iss` names it; its metadata lie below this URL (OpenID Connect Discovery 1.0, 4). */
  readonly issuer: string
  /** Its name on the sign-in page; null: its host. */
  readonly name: string | null
  readonly clientId: string
  /** Null: a public client. */
  readonly clientSecret: Redacted.Redacted | null
  readonly scope: string
  /** The resource that access tokens are asked for (RFC 8707); null: the issuer's default. */
  readonly resource: string | null
}
