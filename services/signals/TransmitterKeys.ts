/** The public keys of a transmitter, at its `jwks_uri`, which its metadata name where the configuration does not. */
import { Effect, Schema } from "effect"
import { Outbound } from "../platform/Outbound.ts"
import { fetchedKeys, keysAt } from "../platform/security/KeySets.ts"
import type { Transmitter } from "./ConfiguredTransmitter.ts"

const Metadata = Schema.fromJsonString(Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String }))
const decodeMetadata = Schema.decodeUnknownEffect(Metadata)
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

/** Where an issuer's metadata are (Shared Signals Framework 1.0, 7.2.1): before the path of the issuer. */
export const metadataOf = (issuer: string): string => {
  const { origin, pathname } = new URL(issuer)
  return `${origin}/.well-known/ssf-configuration${pathname.replace(/\/$/, "")}`
}

const discovered = Effect.fnUntraced(function* (issuer: string) {
  const outbound = yield* Outbound
  const textAt = Effect.fnUntraced(function* (url: string) {
    const { body, status } = yield* outbound.ask(url, { trusted: true, headers: { accept: "application/json" } })
    if (status !== 200) return yield* Effect.fail(`status ${status}`)
    return new TextDecoder().decode(body)
  })
  return yield* fetchedKeys(Effect.gen(function* () {
    const metadata = yield* Effect.flatMap(textAt(metadataOf(issuer)), decodeMetadata)
    if (metadata.issuer !== issuer) return yield* Effect.fail("the metadata are another issuer's")
    return yield* Effect.flatMap(textAt(metadata.jwks_uri), decodeJson)
  }))
})

export const transmitterKeys = ({ issuer, jwksUri }: Transmitter) =>
  jwksUri === null ? discovered(issuer) : keysAt(jwksUri)
