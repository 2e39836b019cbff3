/** The configuration of a transmitter of security events; the code that verifies its tokens is loaded later. */
import { type Redacted, Schema } from "effect"
import { TokenAlgorithm } from "../people/ConfiguredTokenIssuer.ts"
import { type SignalEffect, type SignalName, signalNames, signals } from "./SignalEvents.ts"

const Word = Schema.String.check(Schema.isPattern(/^\S{1,1000}$/))
/** A bearer token (RFC 6750) of at least 32 characters, which nobody guesses. */
const Secret = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._~+/-]{32,1000}=*$/))

/** One of `SIGNAL_TRANSMITTERS`, as the variable has it. */
export const ConfiguredTransmitter = Schema.Struct({
  issuer: Word,
  audience: Word,
  jwks_uri: Schema.optionalKey(Word),
  algorithms: Schema.optionalKey(Schema.NonEmptyArray(TokenAlgorithm)),
  push_token: Schema.optionalKey(Secret),
  poll: Schema.optionalKey(Schema.Struct({ endpoint: Word, token: Secret })),
  subject_issuers: Schema.optionalKey(Schema.NonEmptyArray(Word)),
  emails: Schema.optionalKey(Schema.Boolean),
  events: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})
export type ConfiguredTransmitter = typeof ConfiguredTransmitter.Type

/** An identity provider whose security events this installation takes. */
export interface Transmitter {
  /** The `iss` of its tokens. */
  readonly issuer: string
  /** The `aud` that its tokens name for this installation. */
  readonly audience: string
  /** Null: its metadata (`/.well-known/ssf-configuration`) name it. */
  readonly jwksUri: string | null
  readonly algorithms: ReadonlyArray<TokenAlgorithm>
  /** The credential of its pushes; null: it may not push. */
  readonly pushToken: Redacted.Redacted | null
  /** Where its events are polled; null: nowhere. */
  readonly poll: { readonly endpoint: string; readonly token: Redacted.Redacted } | null
  /** The issuers of the people whom it may name. */
  readonly subjectIssuers: ReadonlyArray<string>
  /** Whether it may name a person by a verified address. */
  readonly emails: boolean
  readonly effects: Readonly<Record<SignalName, SignalEffect>>
}

const isName = (name: string): name is SignalName => signalNames.some((known) => known === name)

/** The effects of a transmitter's events; null where the configuration names another event or effect. */
export const effectsOf = (
  events: Readonly<Record<string, string>> | undefined,
): Readonly<Record<SignalName, SignalEffect>> | null => {
  const all = Object.fromEntries(
    signalNames.map((name) => [name, events === undefined ? signals[name].effects[0]! : "ignore"]),
  ) as Record<SignalName, SignalEffect>
  for (const [name, wanted] of Object.entries(events ?? {})) {
    const effect = isName(name) ? signals[name].effects.find((possible) => possible === wanted) : undefined
    if (effect === undefined) return null
    all[name as SignalName] = effect
  }
  return all
}
